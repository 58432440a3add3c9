import { ClickHouseError, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { AnalyticsUnavailable } from "../contract.ts";

export type { ClickHouseClient } from "@clickhouse/client";

/** Longer than any query or insert may run, by the limits that the server is given. */
const REQUEST_MS_MAX = 60_000;
/** Queries of callers have places of their own; this bounds everything together. */
const CONNECTIONS_MAX = 16;

/**
 * Opens a client, without connecting yet. Throws when the address is not `http(s)://user:password@host:port/database`; its message does
 * not contain the address, which has a password.
 */
export function openClient(url: string, { requestMsMax = REQUEST_MS_MAX }: { requestMsMax?: number | undefined } = {}) {
  if (!isAddress(url)) throw new Error("ANALYTICS_URL must be http(s)://user:password@host:port/database");
  return createClient({
    url,
    application: "postern",
    request_timeout: requestMsMax,
    max_open_connections: CONNECTIONS_MAX,
    // Failures reach our own log where they are handled; the client would write queries to the console.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: { session_timezone: "UTC" },
  });
}

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname } = new URL(text);
  return /^https?:$/.test(protocol) && /^\/[^/]+$/.test(pathname);
}

/** The name of ClickHouse's error, such as `TOO_MANY_PARTS`; undefined when it did not answer. */
export const errorType = (error: unknown): string | undefined =>
  error instanceof ClickHouseError ? (error.type ?? error.code) : undefined;

/** What concerns every workspace alike: the server shuts down, is overloaded, or does not let us in. */
const AWAY_FOR_ALL: ReadonlySet<string | undefined> = new Set([
  "AUTHENTICATION_FAILED",
  "UNKNOWN_DATABASE",
  "TABLE_IS_READ_ONLY",
  "TOO_MANY_SIMULTANEOUS_QUERIES",
  "SERVER_OVERLOADED",
  "KEEPER_EXCEPTION",
  "NO_ZOOKEEPER",
  "ABORTED",
]);

/** Whether ClickHouse cannot be used at all at the moment: an error that it did not send, or one of its own that says so. */
export const isAway = (error: unknown): boolean =>
  !(error instanceof ClickHouseError) || AWAY_FOR_ALL.has(errorType(error));

/** Awaits an answer. Throws `AnalyticsUnavailable` when ClickHouse is away, else its error. */
export async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (isAway(cause)) throw new AnalyticsUnavailable("ClickHouse does not answer", { cause });
    throw cause;
  }
}
