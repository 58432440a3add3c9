import type { LatencyQuery, LatencyRow } from "../latencies.ts";
import type { ClickHouseClient } from "./client.ts";
import { toRejection } from "./refusals.ts";

/** @throws QueryRejected with reason `timeout` or `unavailable`. */
export async function countLatencies(client: ClickHouseClient, question: LatencyQuery): Promise<readonly LatencyRow[]> {
  const { workspaceId, within, keySpaceId, keyId, externalId, fromMs, toMs, stepMs, timeoutMs } = question;
  const conditions = [
    "e.time >= {fromMs:Int64} and e.time < {toMs:Int64}",
    ...(within === undefined ? [] : ["e.key_space_id in {within:Array(String)}"]),
    ...(keySpaceId === undefined ? [] : ["e.key_space_id = {keySpaceId:String}"]),
    ...(keyId === undefined ? [] : ["e.key_id = {keyId:String}"]),
    ...(externalId === undefined ? [] : ["e.external_id = {externalId:String}"]),
  ];
  // Computes an exact quantile with linear interpolation, like `percentile_cont` in Postgres.
  const query = `select intDiv(e.time, {stepMs:Int64}) * {stepMs:Int64} as step, count() as events,
                        quantilesExactInclusive(0.5, 0.95, 0.99)(e.latency_ms) as p
                   from verification_events as e
                  where e.workspace_id = {workspaceId:String} and ${conditions.join(" and ")}
                  group by step
                  order by step`;
  try {
    const response = await client.query({
      query,
      query_params: {
        workspaceId,
        fromMs,
        toMs,
        stepMs,
        ...(within === undefined ? {} : { within }),
        ...(keySpaceId === undefined ? {} : { keySpaceId }),
        ...(keyId === undefined ? {} : { keyId }),
        ...(externalId === undefined ? {} : { externalId }),
      },
      format: "JSONEachRow",
      clickhouse_settings: {
        max_execution_time: Math.ceil(timeoutMs / 1000),
        wait_end_of_query: 1,
        output_format_json_quote_64bit_integers: 0,
      },
      use_multipart_params: true,
    });
    const rows = await response.json<{ step: number; events: number; p: [number, number, number] }>();
    return rows.map(({ step, events, p: [p50, p95, p99] }) => ({ timeMs: step, count: events, p50, p95, p99 }));
  } catch (error) {
    const { refused } = toRejection(error);
    if (refused.reason === "timeout" || refused.reason === "unavailable") throw refused;
    throw error;
  }
}
