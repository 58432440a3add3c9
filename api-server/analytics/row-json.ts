import type { ResultColumn, ResultType } from "./contract.ts";

/** Turns a row, each value as the store's text or null, into a JSON object. */
export type RowEncoder = (row: readonly (string | null)[]) => string;

/** Turns one value, as the store's text, into JSON. Each store has its own texts for times, truth and arrays. */
export type ValueEncoder = (text: string) => string;

/**
 * Returns the encoder of a query's rows. Of several columns with one name the last one stays, as readers of JSON take it. Names are
 * never used as properties, so that any text is one.
 */
export function rowEncoder(
  columns: readonly ResultColumn[],
  encoderOf: (type: ResultType) => ValueEncoder,
): RowEncoder {
  const last = new Map(columns.map(({ name }, index) => [name, index]));
  const members = columns.flatMap(({ name, type }, index) =>
    last.get(name) === index ? [{ index, name: `${JSON.stringify(name)}:`, encode: encoderOf(type) }] : [],
  );
  return (row) => {
    let json = "";
    for (const { index, name, encode } of members) {
      const text = row[index] ?? null;
      json += `${json === "" ? "" : ","}${name}${text === null ? "null" : encode(text)}`;
    }
    return `{${json}}`;
  };
}

/** A float's text as JSON; NaN and the infinities, which JSON does not have, are null. */
export function floatJson(text: string): string {
  const value = Number(text);
  if (!Number.isFinite(value)) return "null";
  return Object.is(value, -0) ? "-0" : String(value).replace("e+", "e");
}
