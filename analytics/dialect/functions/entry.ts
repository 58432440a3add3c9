import { localSql, type Writer } from "../postgres/writer.ts";
import { invalidQuery } from "../problem.ts";
import { isStringLiteral } from "../resolve/literals.ts";
import { call, type FunctionCall, type ResolvedExpression } from "../resolve/resolved.ts";
import { INT64, isDate, isInteger, isNumeric, STRING, type Type, typeText } from "../resolve/types.ts";
import type { Span } from "../tree.ts";

/*
 * Registry entries. An entry contains everything about a function: its types, its SQL for both databases and its line in the reference.
 * Operators are entries without documentation, because only the parser and the resolver produce them: queries cannot call them by name.
 */

/** Example call and description for docs/reference/analytics.md and admin.getAnalyticsSchema. */
export type Docs = readonly [call: string, meaning: string];

/** Call of a function before its types are checked. */
export interface Called {
  /** Name as written in the query. */
  readonly name: string;
  readonly args: readonly ResolvedExpression[];
  readonly span: Span;
}

/** Resolves a call. @throws QueryProblem if its arguments are invalid. */
export type Resolve = (called: Called) => ResolvedExpression;

/** Emits a call for Postgres. */
export type PostgresSql = (call: FunctionCall, writer: Writer) => string;

export interface ScalarFunction {
  readonly docs?: Docs;
  /** Kinds of the arguments. Those after the first `required` ones are optional. */
  readonly takes?: readonly ArgumentKind[];
  readonly required?: number;
  readonly returns?: Type | ((args: readonly ResolvedExpression[]) => Type);
  /** Replaces `takes` and `returns` for a function whose rules these cannot express. */
  readonly resolve?: Resolve;
  /** Postgres SQL, built from the SQL of the arguments. */
  readonly sql?: (...args: string[]) => string;
  /** Replaces `sql` if the SQL depends on types or literals. */
  readonly postgres?: PostgresSql;
  /** Whether `sql` or `postgres` returns a Postgres `boolean` instead of a value of the result type. */
  readonly isCondition?: boolean;
  /** ClickHouse SQL. Default: the call under its own name. */
  readonly clickhouse?: (call: FunctionCall, args: readonly string[], nowMs: number) => string;
}

export interface ArgumentKind {
  readonly is: (type: Type) => boolean;
  /** Name of the argument in error messages. */
  readonly called: string;
  /** Postgres SQL of an argument of this kind. */
  readonly sql: (argument: ResolvedExpression, writer: Writer) => string;
}

const asIs: ArgumentKind["sql"] = (argument, writer) => writer.value(argument);

export const TEXT: ArgumentKind = {
  is: ({ name }) => name === "String",
  called: "a String",
  sql: (argument, writer) => writer.as(argument, STRING),
};
export const INTEGER: ArgumentKind = {
  is: isInteger,
  called: "a whole number",
  sql: (argument, writer) => writer.as(argument, INT64),
};
export const NUMBER: ArgumentKind = { is: isNumeric, called: "a number", sql: asIs };
export const DATE_OR_TIME: ArgumentKind = { is: isDate, called: "a Date or DateTime", sql: localSql };
export const TIME: ArgumentKind = {
  is: ({ name }) => name === "DateTime" || name === "DateTime64",
  called: "a DateTime",
  sql: localSql,
};
export const TIME64: ArgumentKind = { is: ({ name }) => name === "DateTime64", called: "a DateTime64", sql: asIs };
export const ARRAY: ArgumentKind = { is: ({ name }) => name === "Array", called: "an Array", sql: asIs };
export const ANY: ArgumentKind = { is: ({ name }) => name !== "Interval", called: "a value", sql: asIs };

/** Resolves the call of the function with this ClickHouse name. @throws QueryProblem if its arguments are invalid. */
export function resolveFunction(name: string, entry: ScalarFunction, called: Called): ResolvedExpression {
  if (entry.resolve) return entry.resolve(called);
  const { takes, returns, required } = entry;
  if (!takes || !returns) throw invalidQuery(`there is no function ${called.name} here`, called.span);
  const args = checked(called, takes, required);
  return call(name, args, typeof returns === "function" ? returns(args) : returns, called.span);
}

/** Checks the number and kinds of the arguments. Null is valid for every kind. */
export function checked(
  { name, args, span }: Called,
  kinds: readonly ArgumentKind[],
  required = kinds.length,
): readonly ResolvedExpression[] {
  if (args.length < required || args.length > kinds.length) {
    const requested = required === kinds.length ? `${required}` : `${required} to ${kinds.length}`;
    throw invalidQuery(`${name} takes ${requested} arguments, not ${args.length}`, span);
  }
  args.forEach((argument, index) => {
    const kind = kinds[index];
    if (kind && !kind.is(argument.type) && argument.type.name !== "Nothing") {
      throw invalidQuery(`${name} takes ${kind.called} here, not ${typeText(argument.type)}`, argument.span);
    }
  });
  return args;
}

/** Emits a call for Postgres. */
export function postgresSql({ takes = [], sql, postgres }: ScalarFunction, call: FunctionCall, writer: Writer): string {
  if (postgres) return postgres(call, writer);
  if (!sql) throw invalidQuery(`${call.name} is not supported`, call.span);
  return sql(...call.arguments.map((argument, index) => (takes[index] ?? ANY).sql(argument, writer)));
}

/** Returns the value of an argument that selects a variant of the function, such as a unit. Such an argument must be a literal. */
export function literalText(argument: ResolvedExpression | undefined, { name, span }: Called): string {
  if (argument && isStringLiteral(argument)) return argument.value;
  throw invalidQuery(`${name} takes a string literal here`, argument?.span ?? span);
}

export function literalInteger(argument: ResolvedExpression | undefined, { name, span }: Called): bigint {
  if (argument?.kind === "literal" && typeof argument.value === "bigint") return argument.value;
  throw invalidQuery(`${name} takes a whole number here, written as a literal`, argument?.span ?? span);
}
