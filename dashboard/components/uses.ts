/** How far the server counts where something is used. */
const COUNTED_MAX = 1000;

/** "no key", "1 key", "12 keys", "more than 1,000 keys". */
export function usesText(count: number, one: string, many = `${one}s`): string {
  if (count > COUNTED_MAX) return `more than ${COUNTED_MAX.toLocaleString("en")} ${many}`;
  return count === 0 ? `no ${one}` : countText(count, one, many);
}

/** "0 keys", "1 key", "12,000 keys". */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** The same for a column. */
export const usesNumber = (count: number): string =>
  count > COUNTED_MAX ? `${COUNTED_MAX.toLocaleString("en")}+` : count.toLocaleString("en");
