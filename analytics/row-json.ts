import type { ResultColumn, ResultType } from "./contract.ts";

/** Converts a row to a JSON object. Each value is null or the text that the store returned. */
export type RowEncoder = (row: readonly (string | null)[]) => string;

/** Converts a value from the store's text to JSON. The text of times, booleans and arrays differs between stores. */
export type ValueEncoder = (text: string) => string;

/**
 * Returns the row encoder of a query. If several columns have the same name, only the last one is returned, as most JSON parsers would do.
 * Column names are never used as property names of objects, so any text is valid.
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

/** Converts the text of a float to JSON; NaN and infinities become null, because JSON cannot represent them. */
export function floatJson(text: string): string {
  const value = Number(text);
  if (!Number.isFinite(value)) return "null";
  return Object.is(value, -0) ? "-0" : String(value).replace("e+", "e");
}
