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
