import type { Pool } from "pg";
import { utcDate } from "../../core/utc-date.ts";
import { inBoundedRead } from "../../postgres/bounded-read.ts";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import { QueryRejected } from "../contract.ts";
import type { LatencyQuery, LatencyRow } from "../latencies.ts";

/** @throws QueryRejected with reason `timeout` or `unavailable`. */
export async function countLatencies(db: Pool, question: LatencyQuery): Promise<readonly LatencyRow[]> {
  const { workspaceId, within, keySpaceId, keyId, externalId, fromMs, toMs, stepMs, timeoutMs } = question;
  const text = `select l.step * $8::bigint as "timeMs", l.count, l.p[1] as p50, l.p[2] as p95, l.p[3] as p99
                  from (select e.time / $8::bigint as step, count(*) as count,
                               percentile_cont(array[0.5, 0.95, 0.99]) within group (order by e.latency_ms) as p
                          from verification_events e
                         where e.workspace_id = $1 and e.day >= $2::date and e.day <= $3::date
                           and e.time >= $4::bigint and e.time < $5::bigint
                           and ($6::text[] is null or e.key_space_id = any($6))
                           and ($7::text is null or e.key_space_id = $7)
                           and ($9::text is null or e.key_id = $9) and ($10::text is null or e.external_id = $10)
                         group by 1) l
                 order by l.step`;
  const values = [
    workspaceId,
    utcDate(fromMs),
    utcDate(toMs - 1),
    fromMs,
    toMs,
    within ?? null,
    keySpaceId ?? null,
    stepMs,
    keyId ?? null,
    externalId ?? null,
  ];
  try {
    const rows = await inBoundedRead(db, timeoutMs, (tx) =>
      tx.query<LatencyRow>({ name: "count-latencies", text, values }),
    );
    if (rows === "TOO_SLOW") throw new QueryRejected("timeout", "Reading latencies took longer than its time limit.");
    return rows.rows;
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    throw new QueryRejected("unavailable", "The analytics store does not respond; try again later.", { cause: error });
  }
}
