import type { LimitCharge } from "../charges.ts";
import type { OverrideRecord } from "../records.ts";

/*
 * Overrides by pattern (api-v2.md section 9.3). Each `*` matches any sequence of characters except line breaks, possibly empty; all other
 * characters are literal and case-sensitive, and the complete identifier must match.
 */

const STAR = "*";
const LINE_BREAK = /[\n\r\u2028\u2029]/;

/**
 * Matches each literal at its leftmost position, without backtracking: a later position is never better. Line breaks, which wildcards do
 * not match, do not change this. A wildcard that reached a later position would span the earlier occurrence of the literal, so the literal
 * and the text between contain no line break.
 */
export function matchesPattern(pattern: string, identifier: string): boolean {
  let star = pattern.indexOf(STAR);
  if (star === -1) return pattern === identifier;
  if (!identifier.startsWith(pattern.slice(0, star))) return false;
  const checkRuns = LINE_BREAK.test(identifier);
  let at = star;
  for (;;) {
    const segmentStart = star + 1;
    star = pattern.indexOf(STAR, segmentStart);
    const isLast = star === -1;
    const piece = isLast ? pattern.slice(segmentStart) : pattern.slice(segmentStart, star);
    const found = isLast ? identifier.length - piece.length : identifier.indexOf(piece, at);
    if (found < at || (isLast && !identifier.endsWith(piece))) return false;
    if (checkRuns && LINE_BREAK.test(identifier.slice(at, found))) return false;
    if (isLast) return true;
    at = found + piece.length;
  }
}

/**
 * Returns the override that applies to the identifier: the exact one, otherwise the matching pattern with the most literal characters. Of
 * several patterns with equally many, the one with the smallest id applies. Exact overrides are usually looked up separately.
 */
export function selectOverride<Override extends Pick<OverrideRecord, "id" | "identifier">>(
  patterns: readonly Override[],
  identifier: string,
): Override | undefined {
  let best: Override | undefined;
  let bestLiterals = -1;
  for (const candidate of patterns) {
    if (candidate.identifier === identifier) return candidate;
    const literals = literalCharacters(candidate.identifier);
    const isBetter =
      literals > bestLiterals || (literals === bestLiterals && best !== undefined && candidate.id < best.id);
    if (isBetter && matchesPattern(candidate.identifier, identifier)) {
      best = candidate;
      bestLiterals = literals;
    }
  }
  return best;
}

/** Reason why a matching pattern does not apply. */
export type Overridden = "exactOne" | "moreLiterals" | "smallerId";

export interface MatchingOverride<Override> {
  readonly override: Override;
  /** Number of characters other than `*`. */
  readonly literals: number;
  /** Reason why another override takes precedence; `undefined` for the override that applies. */
  readonly overriddenBy: Overridden | undefined;
}

/**
 * Returns all overrides that match the identifier, for display. The first is the one that `selectOverride` returns; the others follow by
 * precedence.
 */
export function explainOverrides<Override extends Pick<OverrideRecord, "id" | "identifier">>(
  overrides: readonly Override[],
  identifier: string,
): MatchingOverride<Override>[] {
  const selected = selectOverride(overrides, identifier);
  if (selected === undefined) return [];
  const selectedLiterals = literalCharacters(selected.identifier);
  const overriddenBy = (override: Override, literals: number): Overridden | undefined => {
    if (override === selected) return undefined;
    if (selected.identifier === identifier) return "exactOne";
    return literals < selectedLiterals ? "moreLiterals" : "smallerId";
  };
  return overrides
    .filter((override) => override === selected || matchesPattern(override.identifier, identifier))
    .map((override) => {
      const literals = literalCharacters(override.identifier);
      return { override, literals, overriddenBy: overriddenBy(override, literals) };
    })
    .sort(byNearness);
}

function byNearness(a: MatchingOverride<{ id: string }>, b: MatchingOverride<{ id: string }>): number {
  if (a.overriddenBy === undefined) return -1;
  if (b.overriddenBy === undefined) return 1;
  return b.literals - a.literals || (a.override.id < b.override.id ? -1 : 1);
}

function literalCharacters(pattern: string): number {
  let count = pattern.length;
  for (let at = pattern.indexOf(STAR); at !== -1; at = pattern.indexOf(STAR, at + 1)) count -= 1;
  return count;
}

/** Returns the charge with the active override, which replaces the limit and the duration but not the cost (api-v2.md section 9.3). */
export const applyOverride = (charge: LimitCharge, override: OverrideRecord): LimitCharge => ({
  ...charge,
  limit: override.limit,
  durationMs: override.durationMs,
  accuracy: override.async ? "local" : charge.accuracy,
});
