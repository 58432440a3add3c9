import { invalidQuery } from "../problem.ts";
import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { localSql, type Writer } from "./writer.ts";

/**
 * Maps the letters after `%` in MySQL formats to `to_char` templates of Postgres. Without the prefix TM, names of months and days are
 * English.
 */
const TEMPLATES: Readonly<Record<string, string>> = {
  Y: "YYYY",
  y: "YY",
  m: "MM",
  d: "DD",
  e: "FMDD",
  H: "HH24",
  k: "HH24",
  l: "HH12",
  h: "HH12",
  I: "HH12",
  i: "MI",
  f: "US",
  S: "SS",
  s: "SS",
  j: "DDD",
  b: "Mon",
  a: "Dy",
  M: "FMMonth",
  W: "FMDay",
  c: "MM",
  Q: "Q",
  u: "ID",
  V: "IW",
  G: "IYYY",
  g: "IY",
  p: "AM",
  F: "YYYY-MM-DD",
  T: "HH24:MI:SS",
  D: "MM/DD/YY",
  R: "HH24:MI",
  r: "HH12:MI AM",
};

const PLAIN: Readonly<Record<string, string>> = { n: "\n", t: "\t", "%": "%" };

/**
 * Maximum length of the SQL, which could otherwise grow exponentially: each letter repeats the argument, and the argument may itself be a
 * formatted time.
 */
const TEXT_LENGTH_MAX = 100_000;

/** Emits each part as a separate string, because `to_char` would read letters of the literal text as patterns. */
export function formatDateTime(call: FunctionCall, writer: Writer): string {
  const [date, format] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
  const timestamp = localSql(date, writer);
  const letters = formatText(format).split("%").length;
  if (letters * timestamp.length > TEXT_LENGTH_MAX) throw invalidQuery("this formatDateTime is too long", call.span);
  const parts = Array.from(formatText(format).matchAll(/%([\s\S]?)|([^%]+)/g), ([, letter, plain]) =>
    plain === undefined ? partSql(letter ?? "", timestamp, format, writer) : writer.parameters.text(plain),
  );
  return parts.length === 0 ? writer.parameters.text("") : `(${parts.join(" || ")})`;
}

const formatText = (format: ResolvedExpression): string =>
  format.kind === "literal" && typeof format.value === "string" ? format.value : "";

function partSql(letter: string, timestamp: string, format: ResolvedExpression, { parameters }: Writer): string {
  const plain = PLAIN[letter];
  if (plain !== undefined) return parameters.text(plain);
  if (letter === "w") return `(extract(dow from ${timestamp})::text collate "C")`;
  const template = Object.hasOwn(TEMPLATES, letter) ? TEMPLATES[letter] : undefined;
  if (template === undefined) throw invalidQuery(`%${letter} of formatDateTime is not supported`, format.span);
  return `(to_char(${timestamp}, '${template}') collate "C")`;
}
