/** Highest number up to which the server counts the uses of an object. */
const COUNTED_MAX = 1000;

/** Formats a bounded count: "no key", "1 key", "12 keys", "more than 1,000 keys". */
export function usesText(count: number, one: string, many = `${one}s`): string {
  if (count > COUNTED_MAX) return `more than ${COUNTED_MAX.toLocaleString("en")} ${many}`;
  return count === 0 ? `no ${one}` : countText(count, one, many);
}

/** Formats a count with its noun: "0 keys", "1 key", "12,000 keys". */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Formats a bounded count as a number for a table column. */
export const usesNumber = (count: number): string =>
  count > COUNTED_MAX ? `${COUNTED_MAX.toLocaleString("en")}+` : count.toLocaleString("en");
