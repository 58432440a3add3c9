import type { Positioned } from "../../db/fitting.ts";

/**
 * Maximum total bytes of the items of one page, for items whose size callers determine. A page holds at least one item; the others start
 * the next page.
 */
export const PAGE_BYTES_MAX = 4_194_304;

/**
 * Returns the cursor of the page after these rows; `undefined` on the last page. `ids` are those of the page plus the first of the next;
 * the rows cover a prefix of them. A cursor may be the id of a row that was deleted meanwhile.
 */
export function nextCursor(ids: readonly string[], rows: readonly Positioned[], limit: number): string | undefined {
  const place = rows.at(-1)?.place ?? 0;
  return ids[Math.min(place, limit)];
}
