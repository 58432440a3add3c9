/*
 * The fields of a thing, defined once: names and values of its machine form (`--json`), and next to them the heading
 * and the text for a person.
 */

export interface Field<Row> {
  /** In the machine form. These names are stable: none is renamed or removed; new ones may be added. */
  readonly name: string;
  /** In the machine form; null means that there is no value. */
  readonly value: (row: Row) => unknown;
  /** The heading for people; without one the field is only in the machine form. */
  readonly title?: string;
  /** For people; the value itself when left out, `-` for null. */
  readonly text?: (row: Row) => string;
  /** For people, where `text` does not fit. */
  readonly brief?: (row: Row) => string;
  /** May be left out of a table that does not fit. */
  readonly drops?: true;
  /** May be shortened on a narrow terminal. Text that users copy, such as an id, may not. */
  readonly shrinks?: true;
}

export type Fields<Row> = ReadonlyArray<Field<Row>>;

/** The object that `--json` prints for one thing. Unix milliseconds for instants, as in the API. */
export const toObject = <Row>(fields: Fields<Row>, row: Row): Record<string, unknown> =>
  Object.fromEntries(fields.map(({ name, value }) => [name, value(row)]));

/** The documented shape of `toObject`: `{"id","name"}`. */
export const objectShape = (fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{${fields.map(({ name }) => `"${name}"`).join(",")}}`;

/** The documented shape of a list: `{"keys":[{"id","name"}],"hasMore"}`. */
export const listShape = (resources: string, fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{"${resources}":[${objectShape(fields)}],"hasMore"}`;

/** The documented shape of a list that goes on at a cursor; null when it does not. */
export const pagedShape = (resources: string, fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{"${resources}":[${objectShape(fields)}],"hasMore","cursor"}`;

/** The cell that a person sees. */
export function toText<Row>({ value, text }: Field<Row>, row: Row): string {
  const plain = text === undefined ? (value(row) ?? "-") : text(row);
  return printable(String(plain));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach the terminal.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * Customers choose names freely, and a terminal interprets control characters. So control characters, invisible ones and those that
 * change the direction of text are shown by their number.
 */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);

/** The same for `--json`: the text of JSON in which such characters are escaped, so that it has the same value. */
export const printableJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    UNPRINTABLE,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );

/** `2026-11-21 09:30:00Z`: whole seconds, UTC. `none` is the text for null. */
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
/** The largest first: a unit is taken for two of it or more, so that nothing is rounded by more than a quarter. */
const UNITS = [
  { ms: 365 * DAY_MS, name: "year" },
  { ms: 30 * DAY_MS, name: "month" },
  { ms: DAY_MS, name: "day" },
  { ms: HOUR_MS, name: "hour" },
  { ms: MINUTE_MS, name: "minute" },
] as const;

/** `in 3 days`, `2 hours ago`, `now`. `none` is the text for null. */
export function relativeText(ms: number | null, nowMs: number, none = "-"): string {
  if (ms === null) return none;
  const unavailableMs = Math.abs(ms - nowMs);
  const unit = UNITS.find((one) => unavailableMs >= 2 * one.ms) ?? { ms: 1000, name: "second" };
  const count = Math.round(unavailableMs / unit.ms);
  if (count === 0) return "now";
  const span = `${count} ${unit.name}${count === 1 ? "" : "s"}`;
  return ms > nowMs ? `in ${span}` : `${span} ago`;
}

/** A field for an instant: `2026-11-21 09:30:00Z (in 3 days)`, and in brief `in 3 days`. */
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
