/* Field of a resource: name and value for `--json`, heading and text for the terminal. */

export interface Field<Row> {
  /** Name in the `--json` output. Later versions may add names, but never rename or remove them. */
  readonly name: string;
  /** Value in the `--json` output; `null` means no value. */
  readonly value: (row: Row) => unknown;
  /** Heading in the terminal. A field without a heading appears only in the `--json` output. */
  readonly title?: string;
  /** Returns the text for the terminal. Default: the value, or `-` for `null`. */
  readonly text?: (row: Row) => string;
  /** Returns a shorter text for a narrow terminal. */
  readonly brief?: (row: Row) => string;
  /** Whether a narrow table may omit the column. */
  readonly drops?: true;
  /** Whether a narrow table may shorten the text. Text that users copy, such as an id, is never shortened. */
  readonly shrinks?: true;
}

export type Fields<Row> = ReadonlyArray<Field<Row>>;

/** Returns the object of one resource for the `--json` output. Times are Unix milliseconds, as in the API. */
export const toObject = <Row>(fields: Fields<Row>, row: Row): Record<string, unknown> =>
  Object.fromEntries(fields.map(({ name, value }) => [name, value(row)]));

/** Returns the documented shape of `toObject`, such as `{"id","name"}`. */
export const objectShape = (fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{${fields.map(({ name }) => `"${name}"`).join(",")}}`;

/** Returns the documented shape of a list, such as `{"keys":[{"id","name"}],"hasMore"}`. */
export const listShape = (resources: string, fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{"${resources}":[${objectShape(fields)}],"hasMore"}`;

/** Returns the documented shape of a list with a cursor, which is `null` on the last page. */
export const pagedShape = (resources: string, fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{"${resources}":[${objectShape(fields)}],"hasMore","cursor"}`;

/** Returns the text of a table cell. */
export function toText<Row>({ value, text }: Field<Row>, row: Row): string {
  const plain = text === undefined ? (value(row) ?? "-") : text(row);
  return printable(String(plain));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach the terminal.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * Escapes control characters, invisible characters and characters that change the text direction. Names come from customers, and a terminal
 * interprets control characters.
 */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);

/** Returns JSON in which control and invisible characters are escaped; the parsed value stays the same. */
export const printableJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    UNPRINTABLE,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );

/** Formats a time in UTC with seconds, such as `2026-11-21 09:30:00Z`. `none` is the text for `null`. */
export function instantText(ms: number | null, none = "-"): string {
  return ms === null
    ? none
    : new Date(ms)
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "Z");
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/**
 * Time units, largest first. The text uses the largest unit of which there are at least two, so rounding changes the value by at most a
 * quarter.
 */
const UNITS = [
  { ms: 365 * DAY_MS, name: "year" },
  { ms: 30 * DAY_MS, name: "month" },
  { ms: DAY_MS, name: "day" },
  { ms: HOUR_MS, name: "hour" },
  { ms: MINUTE_MS, name: "minute" },
] as const;

/** Formats a time relative to now: `in 3 days`, `2 hours ago` or `now`. `none` is the text for `null`. */
export function relativeText(ms: number | null, nowMs: number, none = "-"): string {
  if (ms === null) return none;
  const distanceMs = Math.abs(ms - nowMs);
  const unit = UNITS.find((one) => distanceMs >= 2 * one.ms) ?? { ms: 1000, name: "second" };
  const count = Math.round(distanceMs / unit.ms);
  if (count === 0) return "now";
  const span = `${count} ${unit.name}${count === 1 ? "" : "s"}`;
  return ms > nowMs ? `in ${span}` : `${span} ago`;
}

/** Returns a field for a time such as `2026-11-21 09:30:00Z (in 3 days)`; its short text is `in 3 days`. */
export const instantField = <Row>(
  field: Pick<Field<Row>, "name" | "title" | "drops">,
  instantOf: (row: Row) => number | null,
  none = "-",
): Field<Row> => ({
  ...field,
  value: instantOf,
  text: (row) => {
    const ms = instantOf(row);
    return ms === null ? none : `${instantText(ms)} (${relativeText(ms, Date.now())})`;
  },
  brief: (row) => relativeText(instantOf(row), Date.now(), none),
});
