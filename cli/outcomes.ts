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

/** Exit codes of commands that report an outcome. Codes below 10 have the same meaning for all commands. Existing codes never change. */
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
 * Returns the exit code. It is 0 if the request is allowed, even if only because the policy is in Audit mode, and 1 for a rejection whose
 * outcome this version does not know.
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
