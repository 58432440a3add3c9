/* Lists and dates in sentences. The functions are pure. */

/** Joins phrases: "a, b and c". */
export const andText = (phrases: readonly string[]): string =>
  phrases.length < 2 ? phrases.join("") : `${phrases.slice(0, -1).join(", ")} and ${phrases.at(-1)}`;

/** Maximum number of names in a sentence; beyond it, they are counted. */
const NAMED_MAX = 3;

/** Names a few objects, or counts them: "the role editor", "the roles editor and viewer", "12 roles". */
export function namesText(names: readonly string[], one: string, many: string): string {
  if (names.length > NAMED_MAX) return `${names.length.toLocaleString("en")} ${many}`;
  return `the ${names.length === 1 ? one : many} ${andText(names)}`;
}

/** Formats a local day: "Feb 26, 2027". */
export const dayText = (atMs: number): string =>
  new Date(atMs).toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
