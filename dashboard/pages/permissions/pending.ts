/*
 * What a person changed in the matrix and has not saved: by role, which slugs it is to grant and which no longer. Pure.
 */

export interface RoleChange {
  readonly roleId: string;
  readonly roleName: string;
  /** Slugs, sorted. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** By role id; of a role by slug: whether it is to be granted. Cells that are as they were read are not in it. */
export type Pending = ReadonlyMap<string, { readonly name: string; readonly cells: ReadonlyMap<string, boolean> }>;

export const NOTHING_PENDING: Pending = new Map();

/** `isGranted` is the cell as it was read. Toggled twice it is as before, and nothing is pending for it. */
export function toggled(
  pending: Pending,
  { roleId, roleName, slug, isGranted }: { roleId: string; roleName: string; slug: string; isGranted: boolean },
): Pending {
  const cells = new Map(pending.get(roleId)?.cells);
  const wanted = !(cells.get(slug) ?? isGranted);
  if (wanted === isGranted) cells.delete(slug);
  else cells.set(slug, wanted);
  const next = new Map(pending);
  if (cells.size === 0) next.delete(roleId);
  else next.set(roleId, { name: roleName, cells });
  return next;
}

export function without(pending: Pending, roleId: string): Pending {
  const next = new Map(pending);
  next.delete(roleId);
  return next;
}

export const countOf = (pending: Pending): number =>
  [...pending.values()].reduce((count, { cells }) => count + cells.size, 0);

export const changesOf = (pending: Pending): RoleChange[] =>
  [...pending]
    .map(([roleId, { name, cells }]) => ({
      roleId,
      roleName: name,
      added: slugsOf(cells, true),
      removed: slugsOf(cells, false),
    }))
    .sort((a, b) => (a.roleName.toLowerCase() < b.roleName.toLowerCase() ? -1 : 1));

const slugsOf = (cells: ReadonlyMap<string, boolean>, isGranted: boolean): string[] =>
  [...cells]
    .filter(([, wanted]) => wanted === isGranted)
    .map(([slug]) => slug)
    .sort();

const fold = (slug: string): string => slug.toLowerCase();

/**
 * What the role is to grant: what it grants now with the change on top, so that what others changed since the page was read stays. Slugs are
 * compared ignoring case, as the store does.
 */
export function applied(granted: readonly string[], { added, removed }: RoleChange): string[] {
  const removes = new Set(removed.map(fold));
  const kept = granted.filter((slug) => !removes.has(fold(slug)));
  const has = new Set(kept.map(fold));
  return [...kept, ...added.filter((slug) => !has.has(fold(slug)))];
}

/** What others did to a role between two readings. */
export interface Meanwhile {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

export function meanwhile(before: readonly string[], now: readonly string[]): Meanwhile | undefined {
  const [was, is] = [new Set(before.map(fold)), new Set(now.map(fold))];
  const added = now.filter((slug) => !was.has(fold(slug)));
  const removed = before.filter((slug) => !is.has(fold(slug)));
  return added.length + removed.length === 0 ? undefined : { added, removed };
}
