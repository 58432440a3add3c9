import { PublicError } from "../../../core/errors.ts";
import { inBoundedRead } from "../../../postgres/bounded-read.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import type { Positioned } from "../../db/pages.ts";
import type { ReadDeps } from "../deps.ts";

/** Timeout of a search. A search may read every row of a workspace, and must not delay other requests for long. */
const SEARCH_MS_MAX = 5000;

/**
 * Reads a page of a list: all rows from its start if `search` is omitted or blank, otherwise those that match `search`.
 * @throws PublicError 408 `request_timeout` if the search takes too long.
 */
export async function readPage<Row>(
  { deps }: { readonly deps: ReadDeps },
  search: string | undefined,
  read: {
    readonly all: (db: Queryable) => Promise<Row[]>;
    readonly fitting: (db: Queryable, search: string) => Promise<Row[]>;
  },
): Promise<Row[]> {
  const requested = search?.trim() ?? "";
  if (requested === "") return read.all(deps.db);
  return readBriefly(deps, "Searching for a longer text is often faster.", (db) => read.fitting(db, requested));
}

/**
 * Runs a read that can be slow in the worst case, with a timeout of `SEARCH_MS_MAX`.
 * @throws PublicError 408 `request_timeout` with `advice` for the caller.
 */
export async function readBriefly<T>(
  { db }: ReadDeps,
  advice: string,
  read: (db: Queryable) => Promise<T>,
): Promise<T> {
  const found = await inBoundedRead(db, SEARCH_MS_MAX, read);
  if (found !== "TOO_SLOW") return found;
  throw new PublicError("request_timeout", `The search was canceled after ${SEARCH_MS_MAX} ms. ${advice}`);
}

/**
 * Maximum total size of the items of one page, in bytes. It is needed because callers determine how large some items are. A page holds at
 * least one item; an item that does not fit starts the next page.
 */
export const PAGE_BYTES_MAX = 4_194_304;

/**
 * Returns the cursor of the next page; `undefined` on the last page. `ids` are the ids of this page and, last, the first id of the next
 * page. `rows` are the rows that were read for a prefix of these ids. A cursor may be the id of a row that was deleted in the meantime.
 */
export function nextCursor(ids: readonly string[], rows: readonly Positioned[], limit: number): string | undefined {
  const place = rows.at(-1)?.place ?? 0;
  return ids[Math.min(place, limit)];
}
