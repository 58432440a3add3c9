import type { Code } from "./codes.ts";

/** The status with which a gate answers a request whose verification ended with this code; 200 stands for what the app answers. */
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
