import pg, { type Pool, type PoolClient } from "pg";
import type { Closeable } from "../../edge/closeable.ts";
import { WorkspaceLimiter } from "../../edge/workspace-limiter.ts";
import type { DatabaseUrl } from "../../postgres/pool.ts";
import { createPool } from "../../postgres/pool.ts";
import {
  QUERY_WAITING,
  type QueryLimits,
  QueryRejected,
  type QueryResponse,
  type QueryRun,
  type StoreQuery,
} from "../contract.ts";
import { type RowEncoder, rowEncoder } from "../row-json.ts";
import { readingSettings, SETTING_NAMES } from "./reading-settings.ts";
import { toRejection } from "./refusals.ts";
import { ANALYTICS_ROLE, prepareAnalyticsRole } from "./role.ts";
import { beginReading, settableSettings } from "./scope.ts";
import { postgresEncoder } from "./value-json.ts";

/*
 * Caller queries have separate connections, so that slow queries do not block the API. Each query runs in a read-only transaction with
 * limits, as a role that sees only the rows of its scope.
 */

const CONNECTIONS_MAX = 4;
/** Maximum concurrent queries per workspace: half of the connections, so that slow queries of one workspace do not block the others. */
const PER_WORKSPACE_MAX = 2;
/** Delay after the statement timeout. If the server has not canceled the statement by then, it is stalled or unreachable. */
const RESPONSE_GRACE_MS = 5_000;
const TIMEOUT_MS_MAX = 30_000;
/**
 * Interval at which the size of the received data is checked. The check is necessary because a single row can exceed the maximum response
 * size, and a row is parsed only when it is complete.
 */
const LOOK_AT_BYTES_MS = 20;
/** Maximum ratio of a row's size in Postgres' text format to its size in JSON. JSON may be shorter, for example for arrays of numbers. */
const WIRE_BYTES_PER_RESPONSE_BYTE = 2;
const WIRE_BYTES_SPARE = 64 * 1024;

export interface ReaderOptions {
  readonly databaseUrl: DatabaseUrl;
  /** Logs failures that concern an operator. Mistakes in a query are only reported to the caller. */
  readonly log: { warn(about: object, message: string): void };
  readonly waitMsMax?: number;
}

/** Runs queries over the views of schema `analytics`. */
export interface PostgresReader extends Closeable {
  /** @throws QueryRejected, PublicError 503 `server_busy`, or the abort reason of the signal. */
  query(query: StoreQuery, run: QueryRun): Promise<QueryResponse>;
}

/** Opens a reader with separate connections. Connects on first use. */
export function openPostgresReader({
  databaseUrl,
  log,
  waitMsMax = QUERY_WAITING.waitMsMax,
}: ReaderOptions): PostgresReader {
  const pool = createPool(databaseUrl, {
    applicationName: "postern-analytics",
    connectionsMax: CONNECTIONS_MAX,
    responseMsMax: TIMEOUT_MS_MAX + RESPONSE_GRACE_MS,
    onIdleError: (error) => log.warn({ err: error }, "lost an idle connection to Postgres"),
  });
  const limiter = new WorkspaceLimiter({
    ...{ total: CONNECTIONS_MAX, perWorkspace: PER_WORKSPACE_MAX },
    ...QUERY_WAITING,
    waitMsMax,
  });
  let preparing: Promise<ReadonlySet<string>> | undefined;

  /** Prepares the role once per process, and again after a failure. */
  const prepared = async (): Promise<ReadonlySet<string>> => {
    preparing ??= prepare(pool, log);
    try {
      return await preparing;
    } catch (error) {
      preparing = undefined;
      throw error;
    }
  };

  return {
    query: (query, run) =>
      limiter.run(run.scope.workspaceId, run.signal, async () => {
        const startMs = performance.now();
        try {
          const read = await readRows(pool, await prepared(), query, run);
          return { ...read, tookMs: performance.now() - startMs };
        } catch (error) {
          run.signal?.throwIfAborted();
          if (error instanceof QueryRejected) throw error;
          const { refused, isFault } = toRejection(error);
          if (isFault) log.warn({ err: error }, "a query of analytics could not be run");
          throw refused;
        }
      }),
    close: () => pool.end(),
  };
}

/** Returns the settings that the user may set. */
async function prepare(pool: Pool, log: ReaderOptions["log"]): Promise<ReadonlySet<string>> {
  if (!(await prepareAnalyticsRole(pool))) {
    throw new QueryRejected(
      "notConfigured",
      `The database's user may not create roles. Its administrator runs: CREATE ROLE ${ANALYTICS_ROLE} NOLOGIN NOINHERIT; GRANT ${ANALYTICS_ROLE} TO the user of DATABASE_URL.`,
    );
  }
  const settable = await settableSettings(pool, SETTING_NAMES);
  const missing = SETTING_NAMES.filter((name) => !settable.has(name));
  if (missing.length > 0) {
    log.warn(
      { settings: missing },
      "these limits of analytics queries cannot be set: Postgres is too old, or its user may not",
    );
  }
  return settable;
}

async function readRows(
  pool: Pool,
  settable: ReadonlySet<string>,
  query: StoreQuery,
  { scope, limits, signal }: QueryRun,
): Promise<Omit<QueryResponse, "tookMs">> {
  const client = await pool.connect();
  let broken = true;
  try {
    const settings = readingSettings(limits, settable);
    await beginReading(client, scope, settings);
    const rows = await collect(client, query, limits, signal);
    await client.query("rollback");
    broken = false;
    return rows;
  } catch (error) {
    // After an error response from Postgres, the connection can be reused.
    broken = !(error instanceof pg.DatabaseError) || !(await rolledBack(client));
    throw error;
  } finally {
    // The pool closes a broken connection immediately, even in the middle of a response. Postgres then cancels the query.
    client.release(broken);
  }
}

async function rolledBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query("rollback");
    return true;
  } catch {
    return false;
  }
}

/** Encodes rows as they arrive. Stops early if there are too many rows, if they are too large, or if the signal is aborted. */
async function collect(
  client: PoolClient,
  { text, values, columns }: StoreQuery,
  limits: QueryLimits,
  signal: AbortSignal | undefined,
): Promise<Omit<QueryResponse, "tookMs">> {
  const rows = new Rows(rowEncoder(columns, postgresEncoder), limits);
  const wireBytesMax = limits.answerBytesMax * WIRE_BYTES_PER_RESPONSE_BYTE + WIRE_BYTES_SPARE;
  const bytesBefore = bytesRead(client);
  // The signal may have been aborted before the query began.
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearInterval(watch);
      signal?.removeEventListener("abort", aborted);
      settle();
    };
    const aborted = () => end(() => reject(signal?.reason));
    const watch = setInterval(() => {
      if (bytesRead(client) - bytesBefore > wireBytesMax) end(() => reject(tooLarge()));
    }, LOOK_AT_BYTES_MS);
    signal?.addEventListener("abort", aborted, { once: true });
    const config = {
      text,
      values: [...values],
      rowMode: "array",
      // Uses the extended protocol even without values. The simple protocol would accept several statements in one text.
      queryMode: "extended",
      // Keeps all values as text, because the query's columns define their types.
      types: { getTypeParser: () => (value: string) => value },
      // If a query has a timeout, as in this pool, the driver passes errors only to the callback.
      callback: (error: Error | null) => end(() => (error === null ? resolve(rows.respond()) : reject(error))),
    };
    const submitted = new pg.Query<(string | null)[]>(config as unknown as pg.QueryArrayConfig);
    submitted.on("row", (row: (string | null)[], result) => {
      // Drops the driver's rows; otherwise it would keep a second copy of all rows.
      if (result !== undefined) result.rows.length = 0;
      try {
        rows.add(row);
      } catch (error) {
        end(() => reject(error));
      }
    });
    client.query(submitted);
  });
}

const bytesRead = (client: PoolClient): number => {
  const stream = (client as unknown as pg.Client).connection.stream as { readonly bytesRead?: number };
  return stream.bytesRead ?? 0;
};

const tooLarge = (): QueryRejected => new QueryRejected("memory", "The answer is larger than its limit.");

const BRACKETS = 2;
const COMMA = 1;

/** Accumulates the JSON of the rows. */
class Rows {
  readonly #encode: RowEncoder;
  readonly #limits: QueryLimits;
  readonly #parts: string[] = [];
  #bytes = BRACKETS;

  constructor(encode: RowEncoder, limits: QueryLimits) {
    this.#encode = encode;
    this.#limits = limits;
  }

  /** @throws QueryRejected if the row exceeds the row limit. */
  add(row: readonly (string | null)[]): void {
    if (this.#parts.length === this.#limits.rowsMax) {
      throw new QueryRejected("rows", `The answer has more than ${this.#limits.rowsMax} rows.`);
    }
    const json = this.#encode(row);
    this.#bytes += Buffer.byteLength(json) + (this.#parts.length === 0 ? 0 : COMMA);
    if (this.#bytes > this.#limits.answerBytesMax) throw tooLarge();
    this.#parts.push(json);
  }

  respond(): Omit<QueryResponse, "tookMs"> {
    return { rowsJson: `[${this.#parts.join(",")}]`, rows: this.#parts.length };
  }
}
