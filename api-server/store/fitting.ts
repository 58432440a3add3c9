/** Of a row that was asked for by its id, among others. */
export interface Placed {
  /** Where its id stands among those that were asked for, from 1. */
  readonly place: number;
}

/**
 * The beginning of a statement about as many things as fit into a page. Its `$1` is the workspace, `$2` the ids in the order of the
 * page, `$3` what they are together at most, bytes. `bytesOfNext` selects the bytes of the thing whose id is `next.id`. What follows
 * reads `fitting f`: each id with its place from 1, and the bytes of all up to it; place 0 stands before the first. Each is measured
 * before the next one: after the first that does not fit, none is looked at.
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
