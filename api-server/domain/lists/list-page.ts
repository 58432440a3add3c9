import type { Placed } from "../../store/fitting.ts";

/**
 * What the items of one page are together at most, bytes, where their makers decide how large each is. A page holds one item in any
 * case; the others begin the next page.
 */
export const PAGE_BYTES_MAX = 4_194_304;

/**
 * Where the page after these rows begins; undefined when there is none. `ids` are those of the page and the next one's first, of
 * which the rows up to some place were read. An id that was deleted meanwhile is a good place to begin at.
 */
export function nextCursor(ids: readonly string[], rows: readonly Placed[], limit: number): string | undefined {
  const place = rows.at(-1)?.place ?? 0;
  return ids[Math.min(place, limit)];
}
