import type { PublicTable } from "../../tables.ts";
import type { Span } from "../tree.ts";
import { type Type, withNull } from "./types.ts";

/*
 * Query after name resolution, from which both stores emit SQL. Apart from result column names, it contains no names from the caller.
 * Aliases are replaced by their definitions, positions in GROUP BY and ORDER BY by columns, `*` by its columns, and operators by the
 * equivalent function. Each expression has the type that ClickHouse assigns, before implicit conversions: the branches of an `if` may have
 * different types, and a `sum` may have a Bool argument.
 *
 * An expression object may occur several times, because all uses of an alias share one object. A walk therefore visits the fully expanded
 * tree, whose size the resolver limits.
 */

export interface ResolvedQuery {
  /** CTEs in dependency order. A CTE never depends on the enclosing query. */
  readonly common: readonly ResolvedBody[];
  readonly body: ResolvedBody;
  /** Names of the result columns in order. */
  readonly names: readonly string[];
}

export type ResolvedBody = ResolvedSelect | ResolvedSet;

/** Set operation. Both sides have as many columns as `types`. Their column types may differ; `types` are the common types. */
export interface ResolvedSet {
  readonly kind: "set";
  readonly span: Span;
  readonly operator: "union all" | "union distinct" | "except" | "except distinct";
  readonly left: ResolvedBody;
  readonly right: ResolvedBody;
  readonly types: readonly Type[];
}

export interface ResolvedSelect {
  readonly kind: "select";
  readonly span: Span;
  readonly distinct: boolean;
  readonly columns: readonly ResolvedExpression[];
  readonly types: readonly Type[];
  readonly from: Source;
  /** ARRAY JOIN, and the distinct operands of `arrayJoin`. Each is expanded once, even if it is written several times. */
  readonly arrayJoins: readonly ResolvedArrayJoin[];
  readonly where: ResolvedExpression | undefined;
  /** Whether rows are aggregated: the SELECT has a GROUP BY, or an aggregate function outside a window. */
  readonly aggregated: boolean;
  readonly groupBy: readonly ResolvedExpression[];
  /** Condition on the rows of a SELECT without aggregation. */
  readonly having: ResolvedExpression | undefined;
  readonly orderBy: readonly ResolvedOrder[];
  readonly limitBy: ResolvedLimitBy | undefined;
  readonly limit: bigint | undefined;
  readonly offset: bigint | undefined;
}

export interface ResolvedArrayJoin {
  readonly operand: ResolvedExpression;
  /** Syntax in the query: the function `arrayJoin` or the clause ARRAY JOIN. With `left`, a row whose array is empty is kept. */
  readonly by: "function" | "inner" | "left";
}

/**
 * Skips the first `offset` rows of each group, in ORDER BY order, and keeps up to `limit` rows after them. The clause applies after
 * DISTINCT and before WITH FILL. `by` contains no constants and may be empty, which makes all rows one group.
 */
export interface ResolvedLimitBy {
  readonly limit: bigint;
  readonly offset: bigint;
  readonly by: readonly ResolvedExpression[];
}

/** A source of rows. Its `id` is unique within the query. */
export type Source = TableSource | CommonSource | DerivedSource | JoinSource;

export interface TableSource {
  readonly kind: "table";
  readonly id: number;
  readonly table: PublicTable;
}

export interface CommonSource {
  readonly kind: "common";
  readonly id: number;
  /** Index in `ResolvedQuery.common`. */
  readonly index: number;
}

export interface DerivedSource {
  readonly kind: "derived";
  readonly id: number;
  readonly body: ResolvedBody;
}

/**
 * Join. On the side of an outer join without a matching row, columns have their type's default instead of null. `on` is `undefined` only
 * for a cross join.
 */
export interface JoinSource {
  readonly kind: "join";
  readonly type: "inner" | "left" | "right" | "full" | "cross";
  readonly left: Source;
  readonly right: Source;
  readonly on: ResolvedExpression | undefined;
}

/** Sort key. NULL and NaN sort last in both directions unless `nullsFirst` is set. */
export interface ResolvedOrder {
  readonly expression: ResolvedExpression;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
  readonly fill: ResolvedFill | undefined;
}

export interface ResolvedFill {
  readonly span: Span;
  readonly from: ResolvedExpression | undefined;
  readonly to: ResolvedExpression | undefined;
  /** Step: a number (negative for descending order) or an interval; `undefined` means a step of 1. */
  readonly step: ResolvedExpression | undefined;
}

export type ResolvedExpression =
  | Literal
  | ColumnReference
  | FunctionCall
  | Aggregate
  | WindowCall
  | Conversion
  | Membership
  | ScalarSubquery
  | ArrayJoinReference
  | ArrayFilter
  | Variable;

interface Node {
  readonly span: Span;
  readonly type: Type;
}

/**
 * Literal. Integers are bigint; `nan` and `inf` are numbers. Dates have the form `2024-01-31`, date-times the form `2024-01-31 23:59:59` in
 * UTC with the fraction digits of the type. This includes strings that the query compares with a date.
 */
export interface Literal extends Node {
  readonly kind: "literal";
  readonly value: string | bigint | number | boolean | null;
}

export interface ColumnReference extends Node {
  readonly kind: "column";
  /** Id of a `Source` of the SELECT other than a join. */
  readonly source: number;
  /** Column index in the table or body of the source. */
  readonly index: number;
}

/** Operator or scalar function. */
export interface FunctionCall extends Node {
  readonly kind: "call";
  /** ClickHouse spelling of the name, which is the key in `functions/registry.ts`. `if` and CASE are `multiIf`. */
  readonly name: string;
  readonly arguments: readonly ResolvedExpression[];
}

/** Creates a call of the function. The result is nullable if an argument is nullable, unless `nullable` overrides this. */
export function call(
  name: string,
  args: readonly ResolvedExpression[],
  type: Type,
  span: Span,
  nullable = args.some((argument) => argument.type.nullable),
): FunctionCall {
  return { kind: "call", name, arguments: args, type: withNull(type, nullable), span };
}

/** Call of an aggregate function. `filter` is the condition of `countIf`, `sumIf` or FILTER. `count` of all rows has no argument. */
export interface Aggregate extends Node {
  readonly kind: "aggregate";
  readonly name: string;
  /** Level of a quantile. */
  readonly parameters: readonly number[];
  readonly arguments: readonly ResolvedExpression[];
  readonly distinct: boolean;
  readonly filter: ResolvedExpression | undefined;
}

export interface WindowCall extends Node {
  readonly kind: "window";
  readonly name: string;
  readonly parameters: readonly number[];
  readonly arguments: readonly ResolvedExpression[];
  readonly filter: ResolvedExpression | undefined;
  readonly partitionBy: readonly ResolvedExpression[];
  readonly orderBy: readonly ResolvedOrder[];
  readonly frame: ResolvedFrame | undefined;
}

export interface ResolvedFrame {
  readonly unit: "rows" | "range";
  readonly start: ResolvedBound;
  readonly end: ResolvedBound;
}

export type ResolvedBound =
  | { readonly kind: "unbounded preceding" | "current row" | "unbounded following" }
  | { readonly kind: "preceding" | "following"; readonly by: bigint };

/** CAST to UInt8, Bool or an array type, given by the type of the node. A CAST to another type is a function call. */
export interface Conversion extends Node {
  readonly kind: "cast";
  readonly operand: ResolvedExpression;
}

/** IN. A null in the list or among the rows matches nothing, and null IN any list is null. */
export interface Membership extends Node {
  readonly kind: "in";
  readonly negated: boolean;
  readonly operand: ResolvedExpression;
  readonly of: readonly ResolvedExpression[] | ResolvedBody;
}

/** Subquery with one value, which is null if there is no row. `exists` tests only for the presence of a row. */
export interface ScalarSubquery extends Node {
  readonly kind: "subquery";
  readonly exists: boolean;
  readonly body: ResolvedBody;
}

/** Element of the array at this index of the SELECT's `arrayJoins`. */
export interface ArrayJoinReference extends Node {
  readonly kind: "arrayJoin";
  readonly index: number;
}

export interface ArrayFilter extends Node {
  readonly kind: "arrayFilter";
  readonly array: ResolvedExpression;
  /** Number of the lambda parameter. */
  readonly variable: number;
  readonly condition: ResolvedExpression;
}

/** Parameter of an enclosing lambda, numbered by depth so that equal lambdas have equal trees. */
export interface Variable extends Node {
  readonly kind: "variable";
  readonly number: number;
}
