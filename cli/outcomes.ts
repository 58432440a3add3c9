import { Code } from "../core/verification/codes.ts";

/** Possible outcomes of a request at a gate or at `keys.verifyKey`. */
export const OUTCOMES = [
  ...Code.options,
  "ANONYMOUS",
  "DENIED",
  "MALFORMED",
  "MISSING_KEY",
  "TOO_MANY_ATTEMPTS",
  "UNKNOWN",
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Exit codes of commands that report an outcome. All commands share the codes below 10. The numbers never change. */
const EXIT_CODES: Readonly<Record<Outcome, number>> = {
  VALID: 0,
  ANONYMOUS: 0,
  NOT_FOUND: 10,
  DISABLED: 11,
  EXPIRED: 12,
  FORBIDDEN: 13,
  INSUFFICIENT_PERMISSIONS: 14,
  RATE_LIMITED: 15,
  USAGE_EXCEEDED: 16,
  MALFORMED: 17,
  MISSING_KEY: 18,
  UNKNOWN: 19,
  DENIED: 20,
  TOO_MANY_ATTEMPTS: 21,
};

/**
 * Returns the exit code; 0 if the request is allowed, for example by a policy in Audit mode that only records. A rejection with an unknown
 * outcome, from a newer server, returns 1.
 */
export function exitCodeOf(code: Outcome, allowed: boolean): number {
  if (allowed) return 0;
  return (Object.hasOwn(EXIT_CODES, code) && EXIT_CODES[code]) || 1;
}

export const EXIT_CODES_HELP = `Exit code: 0 if the request is allowed, 1 for a failure, 2 for an invalid call; otherwise by outcome: ${Object.entries(
  EXIT_CODES,
)
  .filter(([, exit]) => exit > 0)
  .map(([code, exit]) => `${exit} ${code}`)
  .join(", ")}.`;
