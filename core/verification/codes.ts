import * as z from "zod";

/** What a verification can end with (api-v2.md section 12). Which one is said first is decided by check-key.ts and conclude.ts. */
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
