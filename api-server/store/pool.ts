import pg from "pg";
import { NamedClient } from "./named-client.ts";

const INT8 = 20;
const INT8_ARRAY = 1016;
const DATE = 1082;

/** Every bigint of ours is a count or an instant below 2^53 (api-v2.md section 2), so that a Number holds it exactly. */
const numbers = (text: string): number[] => (text === "{}" ? [] : text.slice(1, -1).split(",").map(Number));

/** How every connection of ours reads values: int8 as Numbers, dates as text. */
export const customTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") => {
    if (format === "binary") return pg.types.getTypeParser(oid, "binary");
    if (oid === INT8) return Number;
    if (oid === INT8_ARRAY) return numbers;
    // A date stays YYYY-MM-DD: a JavaScript Date would shift it by the local time zone.
    if (oid === DATE) return String;
    return pg.types.getTypeParser(oid, "text");
  }) as pg.CustomTypesConfig["getTypeParser"],
};

const STATEMENT_MS_MAX = 60_000;

export interface PoolOptions {
  /** Connections at most. */
  readonly connectionsMax?: number;
  readonly applicationName?: string;
  /** How long connecting, or waiting for a connection of the pool, may take; 5 s when left out. */
  readonly connectMsMax?: number;
  /** How long an answer of Postgres may take before the connection is given up; 65 s when left out. */
  readonly answerMsMax?: number;
  /** An idle connection was lost. The pool replaces it by itself; the error is only to be logged. */
  readonly onIdleError?: (error: Error) => void;
}

/** Opens a pool whose int8 are Numbers and whose dates are text. Connects on first use; `end()` closes it. */
export function createPool(databaseUrl: string, options: PoolOptions = {}): pg.Pool {
  const pool = new pg.Pool({
    Client: NamedClient,
    connectionString: databaseUrl,
    max: options.connectionsMax ?? 10,
    application_name: options.applicationName ?? "postern",
    connectionTimeoutMillis: options.connectMsMax ?? 5_000,
    // A statement that outlives the request that asked for it (60 s) serves nobody.
    statement_timeout: STATEMENT_MS_MAX,
    // A Postgres that stands still, or whose host is gone, does not end the statement itself. Its connection is given up then,
    // so that the pool is not full of connections that nobody answers on.
    query_timeout: options.answerMsMax ?? STATEMENT_MS_MAX + 5_000,
    keepAlive: true,
    // The system's own two hours would keep an idle connection whose other end is gone.
    keepAliveInitialDelayMillis: 10_000,
    types: customTypes,
  });
  // Without a listener a lost idle connection would end the process.
  pool.on("error", (error) => options.onIdleError?.(error));
  // The pool listens only to connections that are idle. One that is lost while its transaction waits for something else, such
  // as Redis, would end the process too; whoever holds it hears of it from the next statement.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return pool;
}
