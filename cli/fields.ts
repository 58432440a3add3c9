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
export const listShape = (things: string, fields: ReadonlyArray<{ readonly name: string }>): string =>
  `{"${things}":[${objectShape(fields)}],"hasMore"}`;

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

/** `2026-11-21 09:30:00Z`: whole seconds, UTC. `none` is the text for null. */
export function instantText(ms: number | null, none = "-"): string {
  return ms === null
    ? none
    : new Date(ms)
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "Z");
}
