import { invalidQuery } from "../problem.ts";
import type { Membership, ResolvedBody, ResolvedExpression } from "../resolve/resolved.ts";
import { alignedSql, alignedType, indexedText } from "./comparisons.ts";
import type { Writer } from "./writer.ts";

/** Emits `IN` as `boolean`. Null never matches. */
export function membershipSql(expression: Membership, writer: Writer): string {
  const { operand, of, negated } = expression;
  const found = isList(of) ? amongSql(operand, of, writer) : amongRowsSql(operand, of, writer);
  return negated ? `(not ${found})` : found;
}

const isList = (of: Membership["of"]): of is readonly ResolvedExpression[] => Array.isArray(of);

/** Emits strings and integers as one array parameter, so that Postgres can use an index. */
function amongSql(operand: ResolvedExpression, list: readonly ResolvedExpression[], writer: Writer): string {
  const elements = list.filter(({ type }) => type.name !== "Nothing");
  if (elements.length === 0) return "false::boolean";
  const texts = elements.flatMap(literalOf("string"));
  const integers = elements.flatMap(literalOf("bigint"));
  if (operand.type.name === "String" && texts.length === elements.length) {
    return `(${indexedText(writer.value(operand))} = any (${indexedText(writer.parameters.textArray(texts))}))`;
  }
  if (
    alignedType(operand.type, elements[0]?.type ?? operand.type)?.name === "Int64" &&
    integers.length === elements.length
  ) {
    if (integers.some((value) => value >= 2n ** 63n))
      throw invalidQuery("whole numbers from 2^63 on are not supported", operand.span);
    return `(${writer.value(operand)} = any (${writer.parameters.bigintArray(integers)}))`;
  }
  // IN matches NaN, but `=` does not.
  const comparisons = elements.map((element) => alignedSql([operand, element], writer).join(" = "));
  return `(${comparisons.join(" or ")})`;
}

const literalOf =
  <T extends "string" | "bigint">(kind: T) =>
  (element: ResolvedExpression): (T extends "string" ? string : bigint)[] =>
    element.kind === "literal" &&
    typeof element.value === kind &&
    !(kind === "string" && element.type.name !== "String")
      ? [element.value as T extends "string" ? string : bigint]
      : [];

function amongRowsSql(operand: ResolvedExpression, body: ResolvedBody, writer: Writer): string {
  const [column] = body.types;
  if (!column) throw new TypeError("a subquery of IN has a column");
  const type = alignedType(operand.type, column);
  const rows = writer.body(body, [type ?? column]);
  const known = column.nullable ? " where s.c1 is not null" : "";
  const value = type ? writer.as(operand, type) : writer.value(operand);
  return `(${value} in (select s.c1 from (${rows}) as s${known}))`;
}
