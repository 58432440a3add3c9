/* Maps a verification to the outcome of the request, as Postern's gates do. */

/** The caller of a request. */
export interface Caller {
  readonly keyId: string;
  /** The user's id in your system; `undefined` for a key without an owner. */
  readonly externalId: string | undefined;
  readonly meta: Readonly<Record<string, unknown>>;
}

/** Response to a rejected request. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly error: string;
}

export type Outcome = { readonly caller: Caller } | { readonly refusal: Refusal };

/** Requirements that the key of a request must meet. */
export interface Asked {
  readonly permissions?: string;
  readonly ratelimits?: { readonly name: string; readonly limit?: number; readonly duration?: number }[];
}

/** Example requirements: a permission, and one unit of a limit per key. */
export const REPORTS: Asked = {
  permissions: "reports.read",
  ratelimits: [{ name: "reports", limit: 10, duration: 60_000 }],
};
/** Timeout of a verification. After the timeout the request is rejected, because its key cannot be checked. */
export const DEADLINE_MS = 2000;
/** Maximum length of a key; longer keys are rejected without a call. */
const KEY_LENGTH_MAX = 512;

/** Returns the key from an Authorization header such as `Bearer acme_…`. */
export function keyIn(authorization: string | undefined): string | undefined {
  const key = /^Bearer +(\S+)$/i.exec(authorization?.trim() ?? "")?.[1];
  return key === undefined || key.length > KEY_LENGTH_MAX ? undefined : key;
}

/** The members of a keys.verifyKey response that determine the outcome. */
export interface Verification {
  readonly valid: boolean;
  readonly code: string;
  readonly keyId?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly identity?: { readonly externalId: string } | undefined;
  readonly ratelimits?: readonly { readonly exceeded: boolean; readonly reset: number }[] | undefined;
}

export function outcomeOf(response: Verification): Outcome {
  const { valid, code, keyId, identity, meta = {} } = response;
  if (valid && keyId !== undefined) return { caller: { keyId, externalId: identity?.externalId, meta } };
  switch (code) {
    case "NOT_FOUND":
    case "DISABLED":
    case "EXPIRED":
      return notAuthenticated("The API key is not valid.");
    case "RATE_LIMITED":
      return refuse(429, "Too many requests.", { "Retry-After": String(secondsUntilReset(response)) });
    case "USAGE_EXCEEDED":
      return refuse(429, "The API key has no credits left.");
    default:
      // This is the status for INSUFFICIENT_PERMISSIONS, FORBIDDEN, and codes that later versions may add.
      return refuse(403, "The API key may not do this.");
  }
}

export const noKey = (): Outcome => notAuthenticated("An API key is needed: Authorization: Bearer KEY");

/**
 * Returns the outcome for a request whose key could not be verified, because Postern did not respond in time, or because the response is
 * not a verification. The reason is for your log, not for your caller.
 */
export function unavailable(reason: unknown): Outcome {
  console.error("verification failed:", reason instanceof Error ? reason.message : reason);
  return refuse(503, "API keys cannot be verified now.", { "Retry-After": "1" });
}

function secondsUntilReset({ ratelimits = [] }: Verification): number {
  const resets = ratelimits.filter(({ exceeded }) => exceeded).map(({ reset }) => reset);
  return Math.max(1, Math.ceil((Math.max(...resets) - Date.now()) / 1000));
}

const notAuthenticated = (error: string): Outcome => refuse(401, error, { "WWW-Authenticate": "Bearer" });

const refuse = (status: number, error: string, headers: Record<string, string> = {}): Outcome => ({
  refusal: { status, headers, error },
});
