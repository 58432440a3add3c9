import { ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { AnalyticsUnavailable } from "../contract.ts";
import { isUnavailable } from "./store-problem.ts";

export type { ClickHouseClient } from "@clickhouse/client";

/** Request timeout. It is longer than the server-side time limits of all queries and inserts. */
const REQUEST_MS_MAX = 60_000;
/** Maximum number of connections for all kinds of work. The queries of callers have an additional limit. */
const CONNECTIONS_MAX = 16;

export interface ClientOptions {
  readonly requestMsMax?: number | undefined;
  readonly connectionsMax?: number;
  /**
   * Whether each request sets `readonly`. Must be false for a user whose profile already has `readonly = 2`: such a user may change other
   * settings, but not `readonly`.
   */
  readonly readonly?: boolean;
}

/**
 * Opens a client without connecting. Throws if the address does not have the form `http(s)://user:password@host:port/database`. The error
 * message omits the address because the address contains a password.
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
    // Disables the client's own log, which would write query texts to the console. Callers log failures.
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: { session_timezone: "UTC", ...(readonly ? { readonly: "1" } : {}) },
  });
}

/**
 * Opens a read-only client. Either its user has only read permission, or each request sets `readonly`. Throws if the address is invalid.
 */
export const openReadingClient = (
  { url, readerUrl }: { url: string; readerUrl?: string | undefined },
  options: ClientOptions = {},
) => openClient(readerUrl ?? url, { ...options, readonly: readerUrl === undefined });

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname } = new URL(text);
  return /^https?:$/.test(protocol) && /^\/[^/]+$/.test(pathname);
}

/** Awaits a response. Throws `AnalyticsUnavailable` if ClickHouse cannot serve any workspace, and rethrows other errors unchanged. */
export async function answered<T>(response: Promise<T>): Promise<T> {
  try {
    return await response;
  } catch (cause) {
    if (isUnavailable(cause)) throw new AnalyticsUnavailable("ClickHouse cannot be used", { cause });
    throw cause;
  }
}
