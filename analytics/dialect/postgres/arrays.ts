import { invalidQuery } from "../problem.ts";
import { commonType } from "../resolve/common-type.ts";
import type { ArrayFilter, FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { arrayOf, INT64, STRING, type Type } from "../resolve/types.ts";
import { defaultOf, orDefault, typeName } from "./type-names.ts";
import type { Writer } from "./writer.ts";

type Write = (call: FunctionCall, writer: Writer) => string;

const both = ({ arguments: args }: FunctionCall) => args as readonly [ResolvedExpression, ResolvedExpression];

const elementOf = (type: Type): Type => (type.name === "Array" ? type.of : type);

export const arraySql: Write = (call, writer) => {
  const { type } = call;
  if (type.name !== "Array") throw new TypeError("an array literal is of an array type");
  if (type.of.name === "Array") throw invalidQuery("arrays of arrays are not supported", call.span);
  return `array[${call.arguments.map((element) => writer.as(element, type.of)).join(", ")}]::${typeName(type)}`;
};

/**
 * Emits an array access. Indexes start at 1; negative indexes count from the end. For an index out of range, the result is the type's
 * default.
 */
export const arrayElementSql: Write = (call, writer) => {
  const [of, index] = both(call);
  const value = writer.value(of);
  if (index.kind === "literal" && typeof index.value === "bigint" && index.value > 0n) {
    return orDefault(`(${value})[${writer.parameters.bigint(index.value)}]`, call.type);
  }
  const found = `analytics.element(${value}, ${writer.as(index, INT64)})`;
  return call.type.nullable ? found : `coalesce(${found}, ${defaultOf(call.type)})`;
};

/** Converts the arrays, or the array and the element, to a common element type. */
export function alignedArrays(call: FunctionCall, writer: Writer): readonly [string, string] {
  const [left, right] = both(call);
  // Without elements, an array has no type to convert.
  const types = [left, right].map(({ type }) => elementOf(type));
  const element = commonType(types.filter(({ name }) => name !== "Nothing")) ?? STRING;
  if (element.nullable || right.type.name === "Nothing")
    throw invalidQuery("arrays with null are not supported here", left.span);
  return [
    writer.as(left, arrayOf(element)),
    writer.as(right, right.type.name === "Array" ? arrayOf(element) : element),
  ];
}

/** Emits `arrayFilter`, which keeps the order of the array. */
export function arrayFilterSql({ array, variable, condition, type }: ArrayFilter, writer: Writer): string {
  if (type.name !== "Array" || type.of.name === "Array")
    throw invalidQuery("arrays of arrays are not supported", array.span);
  const name = variableName(variable);
  return `array(select ${name}.v from unnest(${writer.value(array)}) with ordinality as ${name}(v, place) where ${writer.truth(condition)} order by ${name}.place)`;
}

/** Returns the SQL name of a lambda parameter. Equal lambdas get equal parameter names, so that their SQL is equal too. */
export const variableName = (variable: number): string => `l${variable}`;
