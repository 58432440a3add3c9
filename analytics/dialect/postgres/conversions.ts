import { invalidQuery } from "../problem.ts";
import type { ResolvedExpression } from "../resolve/resolved.ts";
import { isDate, isInteger, isNumeric, type Type, typeText, widthOf } from "../resolve/types.ts";
import { secondsSql } from "./dates.ts";
import { typeName } from "./type-names.ts";
import { localSql, timestampSql, type Writer } from "./writer.ts";

/** Converts a value to a wider type or to a common type chosen by the resolver. */
export function widened(expression: ResolvedExpression, type: Type, writer: Writer): string {
  const { type: from } = expression;
  if (from.name === "Nothing") return `null::${typeName(type)}`;
  const value = writer.value(expression);
  if (typeName(from) === typeName(type)) return value;
  if (from.name === "Bool" && isNumeric(type)) return `${value}::int::${typeName(type)}`;
  if (from.name === "Array" && from.of.name === "Nothing") return `'{}'::${typeName(type)}`;
  return `${value}::${typeName(type)}`;
}

/** Emits `toInt32` and `toInt64`: floats are truncated, values out of range wrap, dates become days, and date-times become seconds. */
export function integerSql(expression: ResolvedExpression, type: Type, writer: Writer): string {
  const value = bigintSql(expression, writer);
  const { bits, signed } = widthOf(type);
  const from = widthOf(expression.type);
  const fits = isInteger(expression.type) && from.signed === signed && from.bits <= bits;
  if (bits === 64 || fits) return value;
  if (bits === 32 && signed) return `analytics.to_int32(${value})`;
  if (bits === 8 && !signed) return `(${value} & 255)`;
  throw invalidQuery(`a conversion to ${typeText(type)} is not supported`, expression.span);
}

function bigintSql(expression: ResolvedExpression, writer: Writer): string {
  const value = writer.value(expression);
  const { type } = expression;
  if (type.name === "Float64") return `analytics.to_int64(${value})`;
  if (type.name === "Bool") return `${value}::int::bigint`;
  if (type.name === "String") return `analytics.whole_of(${value})`;
  if (type.name === "Date") return `(${value} - date '1970-01-01')::bigint`;
  if (isDate(type)) return secondsSql(timestampSql(expression, writer));
  return type.name === "Nothing" ? "null::bigint" : value;
}

export function floatSql(expression: ResolvedExpression, writer: Writer): string {
  if (expression.type.name === "DateTime64") return `extract(epoch from ${writer.value(expression)})::double precision`;
  if (expression.type.name === "String") return `analytics.float_of(${writer.value(expression)})`;
  if (isDate(expression.type)) return `${bigintSql(expression, writer)}::double precision`;
  return widened(expression, { name: "Float64", nullable: false }, writer);
}

/** Emits a CAST that has no equivalent function. */
export function castSql(expression: ResolvedExpression, type: Type, writer: Writer): string {
  if (isInteger(type)) return integerSql(expression, type, writer);
  if (type.name === "Bool") return writer.truth(expression);
  throw invalidQuery(`a CAST to ${typeText(type)} is not supported`, expression.span);
}

/** Emits the equivalent of `toString`. */
export function textSql(expression: ResolvedExpression, writer: Writer): string {
  const value = writer.value(expression);
  const { type } = expression;
  if (type.name === "String" || type.name === "Nothing") return value;
  if (type.name === "Float64") return `analytics.float_text(${value})`;
  if (isInteger(type) || type.name === "Bool") return `(${value}::text collate "C")`;
  const template = templateOf(type);
  if (!template) throw invalidQuery("toString of an Array is not supported", expression.span);
  return `(to_char(${localSql(expression, writer)}, '${template}') collate "C")`;
}

function templateOf(type: Type): string | undefined {
  const seconds = "YYYY-MM-DD HH24:MI:SS";
  if (type.name === "Date") return "YYYY-MM-DD";
  if (type.name === "DateTime") return seconds;
  if (type.name !== "DateTime64") return undefined;
  return type.scale === 0 ? seconds : type.scale <= 6 ? `${seconds}.FF${type.scale}` : undefined;
}
