/** Maximum number of uses of an object that the server counts exactly. */
const COUNTED_MAX = 1000;

/** Formats a count of uses, of which the server reports at most 1,000 exactly: "no key", "1 key", "12 keys", "more than 1,000 keys". */
export function usesText(count: number, one: string, many = `${one}s`): string {
  if (count > COUNTED_MAX) return `more than ${COUNTED_MAX.toLocaleString("en")} ${many}`;
  return count === 0 ? `no ${one}` : countText(count, one, many);
}

/** Formats a count with its noun: "0 keys", "1 key", "12,000 keys". */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Formats a count of uses for a table column: "12", or "1,000+" for more than 1,000. */
export const usesNumber = (count: number): string =>
  count > COUNTED_MAX ? `${COUNTED_MAX.toLocaleString("en")}+` : count.toLocaleString("en");

/** Joins phrases: "a, b and c". */
export const andText = (phrases: readonly string[]): string =>
  phrases.length < 2 ? phrases.join("") : `${phrases.slice(0, -1).join(", ")} and ${phrases.at(-1)}`;

/** Maximum number of names in a sentence. If there are more, the sentence has only their number. */
const NAMED_MAX = 3;

/** Lists the names of a few objects, or counts them: "the role editor", "the roles editor and viewer", "12 roles". */
export function namesText(names: readonly string[], one: string, many: string): string {
  if (names.length > NAMED_MAX) return countText(names.length, one, many);
  return `the ${names.length === 1 ? one : many} ${andText(names)}`;
}
