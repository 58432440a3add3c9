import { postgresSql } from "../functions/entry.ts";
import { aggregateFunction, scalarFunction } from "../functions/registry.ts";
import type { Aggregate, FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { arrayFilterSql, variableName } from "./arrays.ts";
import { castSql } from "./conversions.ts";
import { membershipSql } from "./membership.ts";
import { literalSql } from "./parameters.ts";
import { windowSql } from "./windows.ts";
import type { Writer } from "./writer.ts";

/** SQL names of the columns and array elements in the current SELECT. */
export interface Names {
  readonly column: (source: number, index: number) => string;
  readonly arrayJoin: (index: number) => string;
}

/** Emits the value of an expression. */
export function valueSql(expression: ResolvedExpression, writer: Writer, names: Names): string {
  switch (expression.kind) {
    case "literal":
      return literalSql(expression, writer.parameters);
    case "column":
      return names.column(expression.source, expression.index);
    case "arrayJoin":
      return names.arrayJoin(expression.index);
    case "variable":
      return `${variableName(expression.number)}.v`;
    case "aggregate":
      return aggregateSql(expression, writer);
    case "window":
      return windowSql(expression, writer);
    case "cast":
      return castSql(expression.operand, expression.type, writer);
    case "arrayFilter":
      return arrayFilterSql(expression, writer);
    case "subquery":
      if (expression.exists) return asNumber(writer.truth(expression));
      return `(${writer.body(expression.body, expression.body.types)})`;
    case "in":
      return asNumber(writer.truth(expression));
    case "call":
      return callSql(expression, writer);
  }
}

const asNumber = (truth: string): string => `${truth}::int::bigint`;

function aggregateSql(call: Aggregate, writer: Writer): string {
  const entry = aggregateFunction(call.name);
  if (!entry) throw new TypeError(`there is no aggregate function ${call.name}`);
  return entry.postgres({ ...call, over: "" }, writer);
}

function callSql(call: FunctionCall, writer: Writer): string {
  const entry = scalarFunction(call.name);
  const sql = postgresSql(entry, call, writer);
  return entry.isCondition && call.type.name !== "Bool" ? asNumber(sql) : sql;
}

/** Emits a condition; numbers other than 0 are true. */
export function truthSql(expression: ResolvedExpression, writer: Writer): string {
  if (expression.kind === "in") return membershipSql(expression, writer);
  if (expression.kind === "subquery" && expression.exists) {
    return `exists (${writer.body(expression.body, expression.body.types)})`;
  }
  if (expression.kind === "call") {
    const entry = scalarFunction(expression.name);
    if (entry.isCondition) return postgresSql(entry, expression, writer);
  }
  const { type } = expression;
  if (type.name === "Bool") return writer.value(expression);
  if (type.name === "Nothing") return "null::boolean";
  return `(${writer.value(expression)} <> 0)`;
}
