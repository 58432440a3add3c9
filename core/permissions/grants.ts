/*
 * What the slugs that a key holds allow (api/v2 section 11.3). A `*` is a wildcard only where it is a whole segment behind
 * a separator (`.` or `:`): at the end it stands for at least one more character of any kind, inside for exactly one
 * segment. `*` alone allows everything. Anywhere else a star is literal text, and so it is in what is asked for.
 */

export interface Grants {
  /** Whether a slug held satisfies the one asked for. A `*` in `requested` is literal. */
  satisfies(requested: string): boolean;
}

/** A slug with inner wildcards: the literals around them; each inner literal begins with a separator. */
interface Pattern {
  readonly literals: readonly string[];
  /** Ends in a wildcard: at least one more character, of any kind. */
  readonly openEnded: boolean;
}

const NOTHING: Grants = { satisfies: () => false };
const EVERYTHING: Grants = { satisfies: () => true };

/** Prepares a set of slugs for many questions. Equal slugs cost one look into a set; wildcards are looked at after it. */
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

/** undefined when the slug has no wildcard. */
function compilePattern(slug: string): Pattern | undefined {
  const literals: string[] = [];
  let literalStart = 0;
  for (let at = 1; at < slug.length; at++) {
    if (slug.charCodeAt(at) !== STAR || !isSeparator(slug.charCodeAt(at - 1))) continue;
    const isLast = at === slug.length - 1;
    if (!isLast && !isSeparator(slug.charCodeAt(at + 1))) continue;
    literals.push(slug.slice(literalStart, at));
    literalStart = at + 1;
  }
  if (literals.length === 0) return undefined;
  const openEnded = literalStart === slug.length;
  if (!openEnded) literals.push(slug.slice(literalStart));
  return { literals, openEnded };
}

/** One look per separator of what is asked for, however many prefixes are held. */
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

/** No backtracking: a segment ends at the first separator, and the literal behind a wildcard begins with one. */
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
