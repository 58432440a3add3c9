/*
 * Evaluates the permissions of a key, given as slugs (api-v2.md section 11.3). A `*` is a wildcard only as a complete segment after a
 * separator (`.` or `:`). At the end of a slug it matches one or more characters of any kind; elsewhere it matches exactly one segment. `*`
 * alone allows everything. All other stars are literal, and so are the stars in a requested permission.
 */

export interface Grants {
  /** Returns whether a held slug satisfies the requested one. A `*` in `requested` is literal. */
  satisfies(requested: string): boolean;
}

/** A slug with inner wildcards, split into the literals around the wildcards. Each inner literal begins with a separator. */
interface Pattern {
  readonly literals: readonly string[];
  /** Whether the slug ends in a wildcard, which matches one or more characters of any kind. */
  readonly openEnded: boolean;
}

const NOTHING: Grants = { satisfies: () => false };
const EVERYTHING: Grants = { satisfies: () => true };

/** Prepares slugs for many checks. An exact match costs one set lookup; wildcards are tried only if it fails. */
export function compileGrants(slugs: readonly string[]): Grants {
  if (slugs.length === 0) return NOTHING;
  if (slugs.includes("*")) return EVERYTHING;
  const exact = new Set(slugs);
  const prefixes = new Set<string>();
  const patterns: Pattern[] = [];
  for (const slug of exact) {
    const pattern = compilePattern(slug);
    if (pattern === undefined) continue;
    const [prefix] = pattern.literals;
    if (prefix !== undefined && pattern.literals.length === 1) prefixes.add(prefix);
    else patterns.push(pattern);
  }
  if (prefixes.size === 0 && patterns.length === 0) return { satisfies: (requested) => exact.has(requested) };
  return {
    satisfies: (requested) =>
      exact.has(requested) || (prefixes.size > 0 && hasPrefix(prefixes, requested)) || matchesSome(patterns, requested),
  };
}

const DOT = 0x2e;
const COLON = 0x3a;
const STAR = 0x2a;
const isSeparator = (character: number): boolean => character === DOT || character === COLON;

/** Returns whether the character is a wildcard star. A slug that is only `*` has its own rule, because no separator precedes the star. */
function isWildcard(slug: string, at: number): boolean {
  if (slug.charCodeAt(at) !== STAR || !isSeparator(slug.charCodeAt(at - 1))) return false;
  return at === slug.length - 1 || isSeparator(slug.charCodeAt(at + 1));
}

/** Returns the effect of the stars in a slug, for display. `literal`: at least one star is literal. */
export function starsOf(slug: string): "none" | "everything" | "wildcard" | "literal" {
  if (slug === "*") return "everything";
  const stars = [...slug.matchAll(/\*/g)].map(({ index }) => isWildcard(slug, index));
  if (stars.length === 0) return "none";
  return stars.every(Boolean) ? "wildcard" : "literal";
}

/** Compiles a slug with inner wildcards; returns `undefined` if the slug has no wildcard. */
function compilePattern(slug: string): Pattern | undefined {
  const literals: string[] = [];
  let literalStart = 0;
  for (let at = 1; at < slug.length; at++) {
    if (!isWildcard(slug, at)) continue;
    literals.push(slug.slice(literalStart, at));
    literalStart = at + 1;
  }
  if (literals.length === 0) return undefined;
  const openEnded = literalStart === slug.length;
  if (!openEnded) literals.push(slug.slice(literalStart));
  return { literals, openEnded };
}

/**
 * Looks up each prefix of the requested permission that ends in a separator. The cost does not depend on how many slugs with a trailing
 * wildcard the key holds.
 */
function hasPrefix(prefixes: ReadonlySet<string>, requested: string): boolean {
  for (let at = 0; at < requested.length - 1; at++) {
    if (isSeparator(requested.charCodeAt(at)) && prefixes.has(requested.slice(0, at + 1))) return true;
  }
  return false;
}

function matchesSome(patterns: readonly Pattern[], requested: string): boolean {
  for (const pattern of patterns) if (matches(pattern, requested)) return true;
  return false;
}

/** Matches without backtracking: a segment ends at the first separator, and the literal after a wildcard begins with a separator. */
function matches({ literals, openEnded }: Pattern, requested: string): boolean {
  let at = 0;
  for (let i = 0; i < literals.length; i++) {
    const literal = literals[i] ?? "";
    if (i > 0) {
      const start = at;
      while (at < requested.length && !isSeparator(requested.charCodeAt(at))) at += 1;
      if (at === start) return false;
    }
    if (!requested.startsWith(literal, at)) return false;
    at += literal.length;
  }
  return openEnded ? at < requested.length : at === requested.length;
}
