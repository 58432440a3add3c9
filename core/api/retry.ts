/* Reads and writes `Retry-After`, and decides which calls the API's clients (command line, operator, dashboard, gate) retry. */

/** Returns the value of `Retry-After`: whole seconds, rounded up, at least 1. */
export const retryAfter = (seconds: number): string => String(Math.max(1, Math.ceil(seconds)));

/**
 * Parses `Retry-After` and returns the wait in ms. Returns `undefined` if the header is absent or is not a number of seconds, because
 * Postern never sends a date.
 */
export const readRetryAfterMs = (header: string | null | undefined): number | undefined =>
  typeof header === "string" && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;

/** Status value for a call that received no response. */
export const NO_RESPONSE = 0;

/**
 * Statuses after which a call may be retried; after any other status the same call would fail again. `always`: the server rejects such a
 * call before executing it. `ifRepeatable`: the call may have been executed, so it is sent again only if it may be executed twice.
 */
const RETRIES: Readonly<Record<number, "always" | "ifRepeatable">> = {
  [NO_RESPONSE]: "ifRepeatable",
  429: "always",
  // A 500 can mean that Postgres or Redis is unavailable, which is often temporary.
  500: "ifRepeatable",
  502: "ifRepeatable",
  503: "ifRepeatable",
  504: "ifRepeatable",
};

/**
 * Returns whether the call may be sent again after this status. The client waits for `Retry-After` if the server sent it, otherwise for its
 * own backoff.
 */
export function mayRetry(status: number, { isRepeatable }: { readonly isRepeatable: boolean }): boolean {
  const retry = RETRIES[status];
  return retry === "always" || (retry === "ifRepeatable" && isRepeatable);
}
