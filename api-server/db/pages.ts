/** A page of a list for the dashboard, sorted by name. */
export interface NamedPage {
  readonly workspaceId: string;
  /** Name at which the page starts. Its letter case does not matter if the list ignores case. The empty string precedes every name. */
  readonly cursor: string;
  /** Substring of a row's id, name or other text column; the empty string matches all rows. */
  readonly search: string;
  readonly rowsMax: number;
}

/** A row of the result of a request for several ids. */
export interface Positioned {
  /** Position of the row's id in the request, starting at 1. */
  readonly place: number;
}

/**
 * Returns the start of a statement that reads as many rows as fit into a page. Parameters: `$1` is the workspace, `$2` the ids in page
 * order, `$3` the maximum total bytes. `bytesOfNext` is a select of the size of the row with the id `next.id`. The rest of the statement
 * reads from `fitting f`, which has each id with its position, starting at 1, and the total bytes up to and including that row. A row with
 * position 0 starts the recursion. Rows are measured one at a time, so none is read after the first that does not fit.
 */
export const fitting = (bytesOfNext: string): string =>
  `with recursive fitting as (
                  select 0 as place, '' as id, 0::bigint as bytes
                   union all
                  select f.place + 1, next.id, f.bytes + own.bytes
                    from fitting f
                   cross join lateral (select ($2::text[])[f.place + 1]) as next (id)
                   cross join lateral (${bytesOfNext}) as own (bytes)
                   where f.place < cardinality($2::text[]) and f.bytes <= $3)`;

/** Escapes `%`, `_` and `\` in a LIKE pattern. */
const literally = (part: string): string => part.replaceAll(/[\\%_]/g, "\\$&");

/** Returns a LIKE pattern for strings that contain `part`. */
export const containing = (part: string): string => `%${literally(part)}%`;

/** Returns a LIKE pattern for strings that begin with `part`. */
export const beginningWith = (part: string): string => `${literally(part)}%`;
