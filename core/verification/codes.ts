import * as z from "zod";

/** Outcomes of a verification (api-v2.md section 12). check-key.ts and conclude.ts define their precedence. */
export const Code = z.enum([
  "VALID",
  "NOT_FOUND",
  "FORBIDDEN",
  "INSUFFICIENT_PERMISSIONS",
  "USAGE_EXCEEDED",
  "RATE_LIMITED",
  "DISABLED",
  "EXPIRED",
]);
export type Code = z.infer<typeof Code>;

/** Status of the gate's response for each code. For 200, the client gets the app's own status. */
export const STATUS_AT_A_GATE: Readonly<Record<Code, number>> = {
  VALID: 200,
  NOT_FOUND: 401,
  DISABLED: 401,
  EXPIRED: 401,
  FORBIDDEN: 403,
  INSUFFICIENT_PERMISSIONS: 403,
  RATE_LIMITED: 429,
  USAGE_EXCEEDED: 429,
};
