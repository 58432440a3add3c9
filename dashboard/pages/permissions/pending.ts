/* Unsaved changes in the permission matrix: for each role, the slugs to grant and to revoke. The functions are pure. */

export interface RoleChange {
  readonly roleId: string;
  readonly roleName: string;
  /** Slugs to grant, sorted. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** Unsaved changes of roles, by role id. `cells` maps each changed slug to whether the role will grant it. */
export type Pending = ReadonlyMap<string, { readonly name: string; readonly cells: ReadonlyMap<string, boolean> }>;

export const NOTHING_PENDING: Pending = new Map();

/** Toggles a cell. `isGranted` is the state of the cell when it was read. A cell that is toggled twice has no pending change. */
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
 * Returns the slugs that the role should grant: its current slugs with the pending change applied. So changes that others made after the
 * page was read are kept. Slugs are case-insensitive, as in the database.
 */
export function applied(granted: readonly string[], { added, removed }: RoleChange): string[] {
  const removes = new Set(removed.map(fold));
  const kept = granted.filter((slug) => !removes.has(fold(slug)));
  const has = new Set(kept.map(fold));
  return [...kept, ...added.filter((slug) => !has.has(fold(slug)))];
}

/** Changes that others made to a role between two reads. */
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
