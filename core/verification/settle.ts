import type { Code } from "./codes.ts";

export interface Counted {
  readonly passed: boolean;
  readonly credits?: { readonly status: "spent" | "refused" | "unknown" | "unreached" } | undefined;
}

/**
 * The code of a verification after counting: what was refused before it, then limits, then credits. Nothing counted
 * (undefined) means that there was nothing to count. Credits that cannot be read refuse; whoever may let the request
 * through without them, by its policy, leaves them out.
 */
export function settle(refusal: Code | undefined, consumed: Counted | undefined): Code {
  if (refusal !== undefined) return refusal;
  if (consumed === undefined) return "VALID";
  if (!consumed.passed) return "RATE_LIMITED";
  const { credits } = consumed;
  return credits === undefined || credits.status === "spent" ? "VALID" : "USAGE_EXCEEDED";
}
