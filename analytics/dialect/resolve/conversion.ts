import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import { isStringLiteral, readAs, stringLiteral } from "./literals.ts";
import { call, type ResolvedExpression } from "./resolved.ts";
import {
  arrayOf,
  BOOL,
  DATE,
  DATE_TIME,
  dateTime64,
  FLOAT64,
  INT32,
  INT64,
  isDate,
  STRING,
  sameType,
  type Type,
  typeText,
  UINT8,
  withNull,
  withZone,
  zoneOf,
} from "./types.ts";

const TYPES: Readonly<Record<string, Type>> = {
  String: STRING,
  UInt8: UINT8,
  Int32: INT32,
  Int64: INT64,
  Float64: FLOAT64,
  Bool: BOOL,
  Date: DATE,
  DateTime: DATE_TIME,
  "DateTime64(3)": dateTime64(3),
  "Array(String)": arrayOf(STRING),
};

/** Resolves a CAST to a type as written in the query. String literals are parsed during resolution. */
export function conversion(operand: ResolvedExpression, written: string, span: Span): ResolvedExpression {
  const bare = /^Nullable\((.*)\)$/.exec(written)?.[1];
  const known = Object.hasOwn(TYPES, bare ?? written) ? TYPES[bare ?? written] : undefined;
  if (!known) throw invalidQuery(`there is no CAST to ${written} here: only to ${Object.keys(TYPES).join(", ")}`, span);
  // Only the target type determines whether the result may be null. A CAST of null to a type that is not nullable is an error.
  const type = withNull(withZone(known, zoneOf(operand.type)), bare !== undefined);
  if (operand.type.nullable && !type.nullable)
    throw invalidQuery(`${typeText(operand.type)} may be null: CAST to Nullable(${written})`, span);
  if (isStringLiteral(operand) && known.name !== "String") return readAs(known, operand.value, span);
  if (!isConvertible(operand.type, known))
    throw invalidQuery(`${typeText(operand.type)} cannot be CAST to ${written}`, span);
  if (sameType(operand.type, type)) return operand;
  const name = FUNCTIONS[known.name];
  return name ? call(name, [operand], type, span) : { kind: "cast", operand, type, span };
}

/** Functions that are equivalent to a CAST to the type. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  String: "toString",
  Int32: "toInt32",
  Int64: "toInt64",
  Float64: "toFloat64",
  Date: "toDate",
  DateTime: "toDateTime",
  DateTime64: "toDateTime64",
};

function isConvertible(from: Type, to: Type): boolean {
  if (from.name === "Interval") return false;
  if (to.name === "String" || from.name === "Nothing") return true;
  if (from.name === "Array" || to.name === "Array") return sameType(from, to);
  return from.name !== "String";
}

/** Resolves `||` and `concat`; other types are converted to String. */
export function concatenation(operands: readonly ResolvedExpression[], span: Span): ResolvedExpression {
  return call("concat", operands.map(asText), STRING, span);
}

export function asText(operand: ResolvedExpression): ResolvedExpression {
  if (operand.type.name === "String" || operand.type.name === "Nothing") return operand;
  return call("toString", [operand], STRING, operand.span);
}

/** Returns the same time in another zone. For a Date, returns its midnight in that zone. */
export function inZone(time: ResolvedExpression, zone: string | undefined): ResolvedExpression {
  if (!isDate(time.type) || zoneOf(time.type) === zone) return time;
  const name = stringLiteral(zone ?? "UTC", time.span);
  if (time.type.name === "Date") return call("toDateTime", [time, name], withZone(DATE_TIME, zone), time.span);
  return call("toTimeZone", [time, name], withZone(time.type, zone), time.span);
}
