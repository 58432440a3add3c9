import type { ClickHouseSettings } from "@clickhouse/client";
import { WorkspaceLimiter } from "../../edge/workspace-limiter.ts";
import {
  QUERY_WAITING,
  type QueryLimits,
  QueryRejected,
  type QueryResponse,
  type QueryRun,
  type QueryScope,
  type StoreQuery,
} from "../contract.ts";
import { rowEncoder } from "../row-json.ts";
import type { ClickHouseClient } from "./client.ts";
import { toRejection } from "./refusals.ts";
import { clickhouseEncoder, textOf } from "./value-json.ts";
import type { ClickhouseWatch } from "./watch.ts";

const QUERIES_MAX = 8;
/**
 * Maximum concurrent queries per workspace. This limit is below the number of connections, so that slow queries of one workspace do not
 * block the others.
 */
const PER_WORKSPACE_MAX = 3;
/** Maximum length of the emitted SQL. It exceeds the 16 KiB of a query, because aliases are replaced by their definitions. */
const TEXT_BYTES_MAX = 4 * 1024 * 1024;
/** Upper bound of the ratio of the result bytes that ClickHouse counts (`max_result_bytes`) to the bytes of the response JSON. */
const RESULT_BYTES_PER_RESPONSE_BYTE = 8;

export interface ReaderOptions {
  readonly client: ClickHouseClient;
  readonly watch: Pick<ClickhouseWatch, "failed" | "succeeded">;
  /** Logs failures that concern an operator. Mistakes in a query are only reported to the caller. */
  readonly log: { warn(about: object, message: string): void };
}

/** Runs caller queries emitted by `emit.ts`. */
export class ClickhouseReader {
  readonly #options: ReaderOptions;
  readonly #limiter = new WorkspaceLimiter({
    ...{ total: QUERIES_MAX, perWorkspace: PER_WORKSPACE_MAX },
    ...QUERY_WAITING,
  });

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** @throws QueryRejected, PublicError 503 `server_busy`, and the signal's reason when it is aborted. */
  query(query: StoreQuery, run: QueryRun): Promise<QueryResponse> {
    return this.#limiter.run(run.scope.workspaceId, run.signal, async () => {
      const startMs = performance.now();
      try {
        const response = await this.#read(query, run);
        this.#options.watch.succeeded("query");
        return { ...response, tookMs: performance.now() - startMs };
      } catch (error) {
        run.signal?.throwIfAborted();
        if (error instanceof QueryRejected) throw error;
        if (error instanceof ResponseTimeout && (await this.#responds())) throw tooSlow(error);
        const { refused, isFault } = toRejection(error);
        if (isFault) {
          this.#options.watch.failed("query", error);
          this.#options.log.warn({ err: error }, "a query of analytics could not be run");
        }
        throw refused;
      }
    });
  }

  /**
   * Returns whether the server responds to other requests. If it does, a timeout was caused by the query, whose own time limit does not
   * cover planning.
   */
  async #responds(): Promise<boolean> {
    const { client } = this.#options;
    return (await client.ping({ select: false, abort_signal: AbortSignal.timeout(PING_MS_MAX) })).success;
  }

  async #read(query: StoreQuery, run: QueryRun) {
    const late = AbortSignal.timeout(run.limits.timeoutMs + GRACE_MS);
    try {
      return await this.#readUntil(late, query, run);
    } catch (error) {
      throw late.aborted ? new ResponseTimeout("ClickHouse did not end a query in time", { cause: error }) : error;
    }
  }

  async #readUntil(late: AbortSignal, { text, values, columns }: StoreQuery, { scope, limits, signal }: QueryRun) {
    const response = await this.#options.client.query({
      query: text,
      query_params: { ...scopeParameters(scope), ...Object.fromEntries(values.map((value, i) => [`p${i}`, value])) },
      format: "JSONCompactEachRow",
      clickhouse_settings: settingsOf(limits),
      use_multipart_params: true,
      abort_signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    const encode = rowEncoder(columns, clickhouseEncoder);
    const rows: string[] = [];
    let bytes = 2;
    for await (const batch of response.stream<unknown[]>()) {
      for (const row of batch) {
        const json = encode(row.json<unknown[]>().map(textOf));
        bytes += Buffer.byteLength(json) + 1;
        if (bytes > limits.answerBytesMax + 1) {
          response.close();
          throw new QueryRejected("memory", "The answer is larger than its limit.");
        }
        if (rows.push(json) > limits.rowsMax) {
          throw new QueryRejected("rows", `The answer has more than ${limits.rowsMax} rows.`);
        }
      }
    }
    return { rowsJson: `[${rows.join(",")}]`, rows: rows.length };
  }
}

/** Delay after the query's own time limit. If the server has not responded by then, it is stalled or unreachable. */
const GRACE_MS = 5_000;
const PING_MS_MAX = 2_000;

class ResponseTimeout extends Error {
  override name = "NoAnswerInTime";
}

const tooSlow = (cause: Error): QueryRejected =>
  new QueryRejected("timeout", "The query took longer than its time limit.", { cause });

/** Returns the parameters of the subqueries of `dialect/clickhouse/sources.ts`. */
export const scopeParameters = ({ workspaceId, within, visibleFrom }: QueryScope): Record<string, unknown> => ({
  scopeWorkspace: workspaceId,
  scopeAll: within === undefined,
  scopeWithin: within ?? [],
  scopeRaw: visibleFrom.raw,
  scopeMinute: visibleFrom.minute,
  scopeHour: visibleFrom.hour,
  scopeDay: visibleFrom.day,
  scopeMonth: visibleFrom.month,
});

/** Returns the settings of a query. They override settings in the server's profile that would change the meaning of SQL. */
const settingsOf = ({
  rowsMax,
  timeoutMs,
  memoryBytesMax,
  answerBytesMax: responseBytesMax,
}: QueryLimits): ClickHouseSettings => ({
  allow_ddl: 0,
  max_execution_time: Math.max(1, Math.ceil(timeoutMs / 1000)),
  timeout_overflow_mode: "throw",
  max_memory_usage: String(memoryBytesMax),
  max_bytes_before_external_group_by: "0",
  max_bytes_before_external_sort: "0",
  max_result_rows: String(rowsMax),
  max_result_bytes: String(responseBytesMax * RESULT_BYTES_PER_RESPONSE_BYTE),
  result_overflow_mode: "throw",
  // Cancels a query when the client closes its connection.
  cancel_http_readonly_queries_on_client_close: 1,
  max_query_size: String(TEXT_BYTES_MAX),
  // Makes the server send nothing before the query has ended. Otherwise an error after the first rows would be appended to the response
  // body.
  wait_end_of_query: 1,
  join_use_nulls: 0,
  union_default_mode: "",
  except_default_mode: "ALL",
  aggregate_functions_null_for_empty: 0,
  transform_null_in: 0,
  do_not_merge_across_partitions_select_final: 1,
  date_time_output_format: "iso",
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_denormals: 0,
  output_format_json_escape_forward_slashes: 0,
});
