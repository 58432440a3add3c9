import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { ID_PREFIXES, type IdKind } from "../../core/ids.ts";
import { type OptionValues, UsageError } from "../command.ts";
import type { paging } from "../options.ts";
import type { Page } from "../output.ts";
import { parseInteger } from "../values.ts";
import type { Api } from "./client.ts";

/** Procedures that return a list in pages. */
type List = {
  [P in Procedure]: "cursor" extends keyof Input<P> ? (Data<P> extends readonly unknown[] ? P : never) : never;
}[Procedure];

export interface Paging {
  /** Maximum number of rows to read; `Infinity` reads all. */
  readonly max: number;
  readonly cursor: string | undefined;
}

const SHOWN = 100;
const SHOWN_MAX = 1_000_000;
const PAGE = 100;
const CURSOR_LENGTH_MAX = 1024;
/** Maximum number of pages. It bounds the memory for their cursors. One million pages contain 100 million rows. */
const PAGES_MAX = 1_000_000;

const isCursor = (next: unknown): boolean =>
  typeof next === "string" && next !== "" && next.length <= CURSOR_LENGTH_MAX;

/**
 * Parses the paging options. Throws `UsageError`. If `of` is set, the list is sorted by ids of that kind, and the cursor must be such an
 * id: the API would accept any text and list the rows that sort after it.
 */
export function readPaging({ limit, all, cursor }: OptionValues<typeof paging>, of?: IdKind): Paging {
  if (all && limit !== undefined) throw new UsageError("--all and --limit exclude each other");
  const prefix = of === undefined ? "" : `${ID_PREFIXES[of]}_`;
  if (cursor !== undefined && (!cursor.startsWith(prefix) || cursor.length > CURSOR_LENGTH_MAX)) {
    throw new UsageError(
      `invalid value "${cursor}" for --cursor: must be the cursor that the previous page returned, ${prefix}…`,
    );
  }
  const some = limit === undefined ? SHOWN : parseInteger("limit", limit, { min: 1, max: SHOWN_MAX, or: "--all" });
  return { max: all ? Number.POSITIVE_INFINITY : some, cursor };
}

/** Yields the pages of a list and requests each one on demand. Throws if the cursor repeats, or if a response is not a page. */
export async function* pagesOf<P extends List>(
  api: Api,
  list: P,
  body: Omit<Input<P>, "limit" | "cursor">,
  { max, cursor: first }: Paging,
): AsyncGenerator<Page<Data<P>[number]>> {
  let cursor = first;
  const seen = new Set<string | undefined>();
  for (let left = max; left > 0; ) {
    const asked = { ...body, limit: Math.min(PAGE, left), ...(cursor === undefined ? {} : { cursor }) };
    const { data: rows, next } = await api.call(list, asked as unknown as Input<P>);
    if (!Array.isArray(rows)) throw new Error(`${list} returned a response that is not a list`);
    if (next !== undefined && !isCursor(next)) throw new Error(`${list} returned an invalid cursor`);
    yield { rows, next };
    left -= rows.length;
    if (next === undefined) return;
    // Records the cursor, because a server that repeats a cursor would cause an endless loop.
    seen.add(cursor);
    if (seen.has(next) || rows.length === 0) throw new Error(`${list} returned the cursor ${next} twice`);
    if (seen.size > PAGES_MAX)
      throw new Error(`${list} has more than ${PAGES_MAX} pages; continue with --cursor ${next}`);
    cursor = next;
  }
}
