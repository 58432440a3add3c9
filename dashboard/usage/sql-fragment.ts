/*
 * A query as a part of an address, so that it can be shared. It stands in the fragment, which a browser keeps to itself: a query may name owners.
 */

/** Without the `#`. */
export const fragmentOf = (sql: string): string => `q=${encodeURIComponent(sql)}`;

/** undefined when the fragment has no query. It may begin with `#`. */
export function readFragment(fragment: string): string | undefined {
  const written = fragment
    .replace(/^#/, "")
    .split("&")
    .find((member) => member.startsWith("q="));
  if (written === undefined) return undefined;
  try {
    return decodeURIComponent(written.slice("q=".length));
  } catch {
    return undefined;
  }
}

export type QueryOf = "verifications" | "ratelimits";

/** Which procedure reads the tables that a query names, by the first of them. */
export function queryOf(sql: string): QueryOf {
  const bare = sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  const [, table = ""] = /\b(?:from|join)\s+[`"]?(key_verifications|ratelimits)_/i.exec(bare) ?? [];
  return table.toLowerCase() === "ratelimits" ? "ratelimits" : "verifications";
}
