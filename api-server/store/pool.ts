import pg from "pg";
import { type DatabaseUrl, urlOf } from "./database-url.ts";
import { NamedClient } from "./named-client.ts";

const INT8 = 20;
const INT8_ARRAY = 1016;
const DATE = 1082;

/** All our bigints are counts or instants below 2^53 (api-v2.md section 2), which a Number holds exactly. */
const numbers = (text: string): number[] => (text === "{}" ? [] : text.slice(1, -1).split(",").map(Number));

/** How all our connections parse values: int8 as Numbers, dates as text. */
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
  /** The most connections. */
  readonly connectionsMax?: number;
  readonly applicationName?: string;
  /** How long connecting, or waiting for a connection of the pool, may take; 5 s when left out. */
  readonly connectMsMax?: number;
  /** How long a reply of Postgres may take before the connection is given up; 65 s when left out. */
  readonly answerMsMax?: number;
  /** Called when an idle connection was lost, for logging. The pool replaces it by itself. */
  readonly onIdleError?: (error: Error) => void;
}

/** Opens a pool whose connections each ask for the address, and that returns int8 as Numbers and dates as text. Connects on first use; `end()` closes it. */
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
    // A statement that outlives its request (60 s) is useless.
    statement_timeout: STATEMENT_MS_MAX,
    // A Postgres that hangs, or whose host is gone, does not cancel the statement itself. Then the connection is given up, so that
    // the pool does not fill up with dead connections.
    query_timeout: options.answerMsMax ?? STATEMENT_MS_MAX + 5_000,
    keepAlive: true,
    // The system's default of two hours would keep an idle connection whose other end is gone.
    keepAliveInitialDelayMillis: 10_000,
    types: customTypes,
  });
  // Without a listener a lost idle connection would end the process.
  pool.on("error", (error) => options.onIdleError?.(error));
  // The pool listens only to idle connections. One that is lost while its transaction waits for something else, such as Redis,
  // would end the process too; its transaction fails with the next statement.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return pool;
}
