/** Part of a row that was requested by its id, among others. */
export interface Placed {
  /** Position of its id in the request, from 1. */
  readonly place: number;
}

/**
 * Returns the beginning of a statement that reads as many things as fit into a page. Its `$1` is the workspace, `$2` the ids in page
 * order, `$3` the most bytes of all together. `bytesOfNext` selects the bytes of the thing whose id is `next.id`. The rest of the
 * statement reads `fitting f`: each id with its place from 1, and the bytes up to and including it; place 0 is before the first.
 * Things are measured one by one: after the first that does not fit, none is read.
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
