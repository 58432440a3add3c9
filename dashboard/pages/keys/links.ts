/** Returns the names that a text, one name per line, adds to a list and removes from it. Role names and slugs are case-insensitive. */
export function differenceOf(
  before: readonly string[],
  text: string,
): { readonly added: string[]; readonly removed: string[] } {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const wanted = new Map(lines.map((line) => [line.toLowerCase(), line]));
  const held = new Map(before.map((name) => [name.toLowerCase(), name]));
  return {
    added: [...wanted].filter(([name]) => !held.has(name)).map(([, line]) => line),
    removed: [...held].filter(([name]) => !wanted.has(name)).map(([, name]) => name),
  };
}
