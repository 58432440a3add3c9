import { Code } from "../core/verification/codes.ts";

/** How a request may end at a gate or at `keys.verifyKey`. */
export const OUTCOMES = [...Code.options, "ANONYMOUS", "MALFORMED", "MISSING_KEY", "UNKNOWN"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The exit codes of commands that decide: those below 10 are of every command. They never change. */
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
};

/**
 * A request that a policy in mode Audit lets through passes, whatever its code is. One that does not ends with 1 where a server of a later
 * release has a code that is not known here.
 */
export function exitCodeOf(code: Outcome, passes: boolean): number {
  if (passes) return 0;
  return (Object.hasOwn(EXIT_CODES, code) && EXIT_CODES[code]) || 1;
}

export const EXIT_CODES_HELP = `Exit code 0 when the request passes, 1 for a failure, 2 for a wrong call, else by the code: ${Object.entries(
  EXIT_CODES,
)
  .filter(([, exit]) => exit > 0)
  .map(([code, exit]) => `${exit} ${code}`)
  .join(", ")}.`;
