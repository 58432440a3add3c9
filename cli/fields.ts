/*
 * What a command tells of a thing, said once: the names and values of its machine form (`--json`), and beside them the heading
 * and the text that a person reads.
 */

export interface Field<Row> {
  /** In the machine form. These names are stable: none is renamed or dropped, new ones may come. */
  readonly name: string;
  /** In the machine form; null says that there is none. */
  readonly value: (row: Row) => unknown;
  /** The heading for people; left out where the field is for machines alone. */
  readonly title?: string;
  /** For people; the value itself when left out, `-` for null. */
  readonly text?: (row: Row) => string;
  /** May be cut short where the terminal is narrow. What is copied, such as an id, may not. */
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
 * Names are whatever customers chose, and a terminal obeys what it is sent: control characters, and those that are invisible or
 * turn the direction of the text, are shown by their number.
 */
const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);

/** `2026-11-21 09:30:00Z`: whole seconds, UTC. `none` stands for null. */
export function instantText(ms: number | null, none = "-"): string {
  return ms === null
    ? none
    : new Date(ms)
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "Z");
}
