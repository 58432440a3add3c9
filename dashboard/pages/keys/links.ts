/** Returns the names that were added and removed between two lists. Role names and slugs are case-insensitive. */
export function differenceOf(
  before: readonly string[],
  after: readonly string[],
): { readonly added: string[]; readonly removed: string[] } {
  const wanted = new Map(after.map((name) => [name.toLowerCase(), name]));
  const held = new Map(before.map((name) => [name.toLowerCase(), name]));
  return {
    added: [...wanted].filter(([name]) => !held.has(name)).map(([, name]) => name),
    removed: [...held].filter(([name]) => !wanted.has(name)).map(([, name]) => name),
  };
}
