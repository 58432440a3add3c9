/** A page of a list for the dashboard, sorted by name. */
export interface NamedPage {
  readonly workspaceId: string;
  /** First name of the page, in any letter case if the list ignores case; the empty string precedes every name. */
  readonly cursor: string;
  /** Substring of an id, a name or another text of a row; the empty string matches all rows. */
  readonly search: string;
  readonly rowsMax: number;
}

/** A row that was requested by its id, in a request for several rows. */
export interface Positioned {
  /** Position of the row's id in the request, starting at 1. */
  readonly place: number;
}

/**
 * Returns the start of a statement that reads as many rows as fit into a page. Its parameters: `$1` the workspace, `$2` the ids in page
 * order, `$3` the maximum total bytes. `bytesOfNext` selects the size of the row with the id `next.id`. The rest of the statement reads
 * `fitting f`: each id with its position from 1, and the bytes up to and including it; position 0 precedes the first. Rows are measured one
 * by one: after the first that does not fit, no further row is read.
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
