import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import type { ResolvedExpression } from "./resolved.ts";
import {
  arrayOf,
  DATE,
  DATE_TIME,
  dateTime64,
  FLOAT64,
  integer,
  isDate,
  isInteger,
  isNumeric,
  type Type,
  typeText,
  widthOf,
  withNull,
  withZone,
  zoneOf,
} from "./types.ts";

/*
 * Common type of several values: the branches of an `if`, the elements of an array, the columns of a UNION. Where no common type exists,
 * such as for Int64 and Float64, ClickHouse uses Variant; this dialect rejects the query.
 */

/** Returns the common type; `undefined` if there is none. */
export function commonType(types: readonly Type[]): Type | undefined {
  return types.reduce<Type | undefined>((common, type) => common && commonOfTwo(common, type), types[0]);
}

/** @throws QueryProblem if the values have no common type. */
export function sharedType(values: readonly ResolvedExpression[], span: Span): Type {
  const type = commonType(values.map((value) => value.type));
  if (type) return type;
  const types = new Set(values.map((value) => typeText(value.type)));
  throw invalidQuery(`no type holds ${[...types].join(" and ")}`, span);
}

function commonOfTwo(one: Type, other: Type): Type | undefined {
  if (one.name === "Nothing") return nullableOrNone(other);
  if (other.name === "Nothing") return nullableOrNone(one);
  if (one.name === "Array" || other.name === "Array") {
    const element = one.name === "Array" && other.name === "Array" ? commonElement(one.of, other.of) : undefined;
    return element && arrayOf(element);
  }
  const common = commonOfScalars(one, other);
  return common && withNull(common, one.nullable || other.nullable);
}

/** Arrays stay unchanged, because they cannot be null. */
const nullableOrNone = (type: Type): Type | undefined => (type.name === "Array" ? undefined : withNull(type, true));

/** An empty array has the element type Nothing, which does not make the common type nullable. */
function commonElement(one: Type, other: Type): Type | undefined {
  return one.name === "Nothing" ? other : other.name === "Nothing" ? one : commonOfTwo(one, other);
}

function commonOfScalars(one: Type, other: Type): Type | undefined {
  if (isDate(one) && isDate(other)) {
    const zone = zoneOf(one);
    return zone === zoneOf(other) ? withZone(commonDate(one, other), zone) : undefined;
  }
  if (one.name === other.name) return one.name === "Interval" ? undefined : one;
  if (one.name === "Bool" || other.name === "Bool") return undefined;
  if (isInteger(one) && isInteger(other)) return commonInteger(one, other);
  // Float64 represents every 32-bit integer, but not every 64-bit integer.
  if (isNumeric(one) && isNumeric(other)) {
    return [one, other].every((type) => !isInteger(type) || widthOf(type).bits <= 32) ? FLOAT64 : undefined;
  }
  return undefined;
}

function commonInteger(one: Type, other: Type): Type {
  const [a, b] = [widthOf(one), widthOf(other)];
  const signed = a.signed || b.signed;
  const bits = Math.max(...[a, b].map((width) => (signed && !width.signed ? width.bits * 2 : width.bits)));
  return integer(bits, signed);
}

function commonDate(one: Type, other: Type): Type {
  const scales = [one, other].map((type) => (type.name === "DateTime64" ? type.scale : undefined));
  if (scales.some((scale) => scale !== undefined)) return dateTime64(Math.max(...scales.map((scale) => scale ?? 0)));
  return one.name === "Date" && other.name === "Date" ? DATE : DATE_TIME;
}
