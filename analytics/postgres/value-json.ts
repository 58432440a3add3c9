import type { ResultType } from "../contract.ts";
import { floatJson, type ValueEncoder } from "../row-json.ts";

/**
 * Returns an integer as text, because a bigint does not fit into a JavaScript number. Throws if the text is not an integer and therefore
 * invalid JSON.
 */
const integer: ValueEncoder = (text) => {
  if (!/^-?\d+$/.test(text)) throw new Error("a value of the answer is not the whole number that its column promises");
  return text;
};
const quoted: ValueEncoder = (text) => JSON.stringify(text);
const truth: ValueEncoder = (text) => (text === "t" ? "true" : "false");
const midnight: ValueEncoder = (text) => `"${text}T00:00:00Z"`;
const timestamp: ValueEncoder = (text) => `"${text.slice(0, 19).replace(" ", "T")}Z"`;

const ENCODERS: Readonly<Record<ResultType, ValueEncoder>> = {
  String: quoted,
  Int64: integer,
  Int32: integer,
  // The value of a comparison is the number 1 or 0, but may arrive as a Postgres boolean.
  UInt8: (text) => (text === "t" ? "1" : text === "f" ? "0" : integer(text)),
  Float64: floatJson,
  Bool: truth,
  Date: midnight,
  DateTime: timestamp,
  "DateTime64(3)": (text) => `"${withMilliseconds(text).replace(" ", "T")}Z"`,
  "Array(String)": arrayOf(quoted),
  "Array(Int64)": arrayOf(integer),
  "Array(Float64)": arrayOf(floatJson),
  "Array(Bool)": arrayOf(truth),
  "Array(Date)": arrayOf(midnight),
  "Array(DateTime)": arrayOf(timestamp),
  Nothing: () => "null",
};

/** Returns the converter from Postgres's text of the type to JSON. Requires `datestyle` ISO and UTC. */
export const postgresEncoder = (type: ResultType): ValueEncoder => ENCODERS[type];

const withMilliseconds = (text: string): string => {
  const [seconds, fraction = ""] = text.split(".");
  return `${seconds}.${fraction.padEnd(3, "0").slice(0, 3)}`;
};

function arrayOf(encode: ValueEncoder): ValueEncoder {
  return (text) =>
    `[${elementsOf(text)
      .map((element) => (element === null ? "null" : encode(element)))
      .join(",")}]`;
}

/** One element of a Postgres array literal `{a,"b c",NULL}`: quoted with backslash escapes, or bare. */
const ELEMENT = /"([^"\\]*(?:\\[\s\S][^"\\]*)*)"|([^,{}]+)/g;

/** Parses a one-dimensional array. Only a bare NULL is null; the string `NULL` is quoted. */
function elementsOf(text: string): (string | null)[] {
  return Array.from(text.matchAll(ELEMENT), ([, quotedText, bare]) =>
    quotedText === undefined
      ? bare === "NULL" || bare === undefined
        ? null
        : bare
      : quotedText.replace(/\\([\s\S])/g, "$1"),
  );
}
