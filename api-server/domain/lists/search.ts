import { PublicError } from "../../../core/errors.ts";
import type { Call } from "../../procedure.ts";
import { inBoundedRead } from "../../store/bounded-read.ts";
import type { Queryable } from "../../store/queryable.ts";

/** A search may have to read every row of a workspace; many of them at once must not delay other requests. */
const SEARCH_MS_MAX = 5000;

/**
 * Reads a page of a list: all rows from its start on when `search` is left out or blank, otherwise those that
 * match it.
 * @throws PublicError 408 `request_timeout` when the search takes too long.
 */
export async function readPage<Row>(
  { deps }: Pick<Call<unknown>, "deps">,
  search: string | undefined,
  read: {
    readonly all: (db: Queryable) => Promise<Row[]>;
    readonly fitting: (db: Queryable, search: string) => Promise<Row[]>;
  },
): Promise<Row[]> {
  const wanted = search?.trim() ?? "";
  if (wanted === "") return read.all(deps.db);
  const rows = await inBoundedRead(deps.db, SEARCH_MS_MAX, (db) => read.fitting(db, wanted));
  if (rows !== "TOO_SLOW") return rows;
  throw new PublicError(
    "request_timeout",
    `The search was given up after ${SEARCH_MS_MAX} ms. A longer text is often found faster.`,
  );
}
