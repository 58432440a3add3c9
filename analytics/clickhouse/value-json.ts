import type { ResultType } from "../contract.ts";
import { floatJson, type ValueEncoder } from "../row-json.ts";

/*
 * Converts rows in JSONCompactStrings format to the response JSON. ClickHouse writes 64-bit integers as strings, times as
 * `2024-01-31T23:59:59Z`, and NaN and infinities as null.
 */

const same: ValueEncoder = (text) => text;
const integer: ValueEncoder = (text) => {
  if (!/^-?\d+$/.test(text)) throw new Error("a value of the answer is not the whole number that its column promises");
  return text;
};
const midnight: ValueEncoder = (text) => `"${text}T00:00:00Z"`;
const timestamp: ValueEncoder = (text) => `"${text}"`;

const ENCODERS: Readonly<Record<ResultType, ValueEncoder>> = {
  String: (text) => JSON.stringify(text),
  Int64: integer,
  Int32: integer,
  UInt8: integer,
  Float64: floatJson,
  Bool: same,
  Date: midnight,
  DateTime: timestamp,
  "DateTime64(3)": timestamp,
  "Array(String)": arrayOf((text) => JSON.stringify(text)),
  "Array(Int64)": arrayOf(integer),
  "Array(Float64)": arrayOf(floatJson),
  "Array(Bool)": arrayOf(same),
  "Array(Date)": arrayOf(midnight),
  "Array(DateTime)": arrayOf(timestamp),
  Nothing: () => "null",
};

export const clickhouseEncoder = (type: ResultType): ValueEncoder => ENCODERS[type];

/** Returns the text that `rowEncoder` expects for a value; arrays become JSON. */
export function textOf(value: unknown): string | null {
  if (value === null) return null;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(",")}]`;
  return typeof value === "string" ? value : jsonOf(value);
}

/** Writes minus zero, which JSON.stringify would write as 0. */
const jsonOf = (value: unknown): string => (Object.is(value, -0) ? "-0" : JSON.stringify(value));

function arrayOf(encode: ValueEncoder): ValueEncoder {
  return (text) =>
    `[${(JSON.parse(text) as unknown[])
      .map((element) => {
        const one = textOf(element);
        return one === null ? "null" : encode(one);
      })
      .join(",")}]`;
}
