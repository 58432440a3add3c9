/* `Retry-After`, and which calls the clients of the API (command line, operator, dashboard, gate) retry. */

/** Returns the value of `Retry-After`: whole seconds, rounded up, at least 1. */
export const retryAfter = (seconds: number): string => String(Math.max(1, Math.ceil(seconds)));

/** Reads `Retry-After`, ms. Returns `undefined` if it is absent, or not a number of seconds: Postern sends no dates. */
export const readRetryAfterMs = (header: string | null | undefined): number | undefined =>
  typeof header === "string" && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;

/** Status of a call without a response. */
export const NO_RESPONSE = 0;

/**
 * Retries by status; any other status stays the same for the same call. `always`: the server rejects such a call before it begins.
 * `ifRepeatable`: the call may have been executed, so only one that may be executed twice is sent again.
 */
const RETRIES: Readonly<Record<number, "always" | "ifRepeatable">> = {
  [NO_RESPONSE]: "ifRepeatable",
  429: "always",
  // 500 may mean that Postgres or Redis is unavailable.
  500: "ifRepeatable",
  502: "ifRepeatable",
  503: "ifRepeatable",
  504: "ifRepeatable",
};

/** Whether the call may be sent again after this status: after `Retry-After` if the server sent it, otherwise after the client's backoff. */
export function mayRetry(status: number, { isRepeatable }: { readonly isRepeatable: boolean }): boolean {
  const retry = RETRIES[status];
  return retry === "always" || (retry === "ifRepeatable" && isRepeatable);
}
