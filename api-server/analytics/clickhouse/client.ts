import { ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { AnalyticsUnavailable } from "../contract.ts";
import { isUnavailable } from "./store-problem.ts";

export type { ClickHouseClient } from "@clickhouse/client";

/** Longer than any query or insert may run, by the limits that the server is given. */
const REQUEST_MS_MAX = 60_000;
/** Queries of callers have places of their own; this bounds everything together. */
const CONNECTIONS_MAX = 16;

export interface ClientOptions {
  readonly requestMsMax?: number | undefined;
  readonly connectionsMax?: number;
  /**
   * Whether each request says that it only reads. Not for a user who can only read: where the profile has `readonly = 2`, a request may have
   * settings of its own, but not that one.
   */
  readonly readonly?: boolean;
}

/**
 * Opens a client, without connecting yet. Throws when the address is not `http(s)://user:password@host:port/database`; its message does
 * not contain the address, which has a password.
 */
export function openClient(
  url: string,
  { requestMsMax = REQUEST_MS_MAX, connectionsMax = CONNECTIONS_MAX, readonly = false }: ClientOptions = {},
) {
  if (!isAddress(url))
    throw new Error("ANALYTICS_URL and ANALYTICS_READER_URL must be http(s)://user:password@host:port/database");
  return createClient({
    url,
    application: "postern",
    request_timeout: requestMsMax,
    max_open_connections: connectionsMax,
    // Failures reach our own log where they are handled; the client would write queries to the console.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: { session_timezone: "UTC", ...(readonly ? { readonly: "1" } : {}) },
  });
}

/** A client that only reads: because its user can do nothing else, or because each request says so. Throws when the address is none. */
export const openReadingClient = (
  { url, readerUrl }: { url: string; readerUrl?: string | undefined },
  options: ClientOptions = {},
) => openClient(readerUrl ?? url, { ...options, readonly: readerUrl === undefined });

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname } = new URL(text);
  return /^https?:$/.test(protocol) && /^\/[^/]+$/.test(pathname);
}

/** Awaits an answer. Throws `AnalyticsUnavailable` when ClickHouse is away, else its error. */
export async function answered<T>(response: Promise<T>): Promise<T> {
  try {
    return await response;
  } catch (cause) {
    if (isUnavailable(cause)) throw new AnalyticsUnavailable("ClickHouse cannot be used", { cause });
    throw cause;
  }
}
