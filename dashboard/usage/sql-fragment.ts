/*
 * Stores a query in the fragment of the URL, so that it can be shared. A query can contain ids of owners, so it is not stored elsewhere in
 * the URL: browsers do not send the fragment to servers.
 */

/** Returns the fragment without the `#`. */
export const fragmentOf = (sql: string): string => `q=${encodeURIComponent(sql)}`;

/** Reads the query from a fragment, which may begin with `#`; returns `undefined` if it contains none. */
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

/** Returns the procedure for a query, by the first table that the query names. */
export function queryOf(sql: string): QueryOf {
  const bare = sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  const [, table = ""] = /\b(?:from|join)\s+[`"]?(key_verifications|ratelimits)_/i.exec(bare) ?? [];
  return table.toLowerCase() === "ratelimits" ? "ratelimits" : "verifications";
}
