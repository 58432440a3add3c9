import pg from "pg";
import { NamedClient } from "./named-client.ts";

/**
 * Address of Postgres, `postgres://user:password@host/database`. A function is called for each new connection, so that the password can
 * change while the process runs; open connections are unaffected.
 */
export type DatabaseUrl = string | (() => string);

export const urlOf = (databaseUrl: DatabaseUrl): string =>
  typeof databaseUrl === "string" ? databaseUrl : databaseUrl();

const INT8 = 20;
const INT8_ARRAY = 1016;
const DATE = 1082;

/** All bigint columns are counts or times below 2^53 (api-v2.md section 2), so a Number represents them exactly. */
const numbers = (text: string): number[] => (text === "{}" ? [] : text.slice(1, -1).split(",").map(Number));

/** Value parsers of all connections: int8 as Numbers, dates as strings. */
export const customTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") => {
    if (format === "binary") return pg.types.getTypeParser(oid, "binary");
    if (oid === INT8) return Number;
    if (oid === INT8_ARRAY) return numbers;
    // Keeps dates as YYYY-MM-DD, because the local time zone would shift a JavaScript Date.
    if (oid === DATE) return String;
    return pg.types.getTypeParser(oid, "text");
  }) as pg.CustomTypesConfig["getTypeParser"],
};

const STATEMENT_MS_MAX = 60_000;

export interface PoolOptions {
  /** Maximum number of connections. */
  readonly connectionsMax?: number;
  readonly applicationName?: string;
  /** Timeout for connecting, and for waiting for a connection from the pool. Default: 5 s. */
  readonly connectMsMax?: number;
  /** Maximum time to wait for a response from Postgres, after which the connection is closed. Default: 65 s. */
  readonly responseMsMax?: number;
  /** Called when an idle connection is lost, for logging. The pool replaces the connection. */
  readonly onIdleError?: (error: Error) => void;
}

/**
 * Creates a pool. It resolves the address for each connection, and returns int8 as Numbers and dates as strings. It connects on first use;
 * `end()` closes it.
 */
export function createPool(databaseUrl: DatabaseUrl, options: PoolOptions = {}): pg.Pool {
  const pool = new pg.Pool({
    Client: class extends NamedClient {
      constructor(config?: pg.ClientConfig) {
        super({ ...config, connectionString: urlOf(databaseUrl) });
      }
    },
    max: options.connectionsMax ?? 10,
    application_name: options.applicationName ?? "postern",
    connectionTimeoutMillis: options.connectMsMax ?? 5_000,
    // Time after which Postgres cancels a statement. By then, the request that sent the statement has timed out (60 s), so the result is
    // useless.
    statement_timeout: STATEMENT_MS_MAX,
    // Time after which the connection is closed, because a Postgres server that hangs or is unreachable does not cancel the statement
    // itself. Otherwise the pool would fill up with dead connections.
    query_timeout: options.responseMsMax ?? STATEMENT_MS_MAX + 5_000,
    keepAlive: true,
    // Interval of keepalive probes. With the system default of two hours, an idle connection whose peer is unreachable would stay open.
    keepAliveInitialDelayMillis: 10_000,
    types: customTypes,
  });
  // Without this listener, a lost idle connection would end the process.
  pool.on("error", (error) => options.onIdleError?.(error));
  // The pool listens only to idle connections. Without this listener, the loss of a connection whose transaction waits for something else,
  // such as Redis, would end the process. With this listener, only the next statement of the transaction fails.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return pool;
}
