import type { PublicTable } from "../../tables.ts";
import type { Span } from "../tree.ts";
import type { Type } from "./types.ts";

/*
 * A query after names were resolved: what both stores write their SQL from. It holds no name of the caller but those of the answer's
 * columns. Aliases are replaced by what they stand for, positions in GROUP BY and ORDER BY by the column, `*` by its columns, operators
 * by the function of the same meaning. Every expression has the type that ClickHouse gives it, before any conversion that its
 * place asks for: the branches of an `if` may differ, and a `sum` may have a Bool.
 *
 * An expression can be met several times (an alias that is used twice is one object), so the tree is walked as often as it would
 * have been written: the resolver bounds that number.
 */

export interface ResolvedQuery {
  /** What WITH defined, in an order in which each reads only those before it. None depends on the query around it. */
  readonly common: readonly ResolvedBody[];
  readonly body: ResolvedBody;
  /** Of the answer, in order. */
  readonly names: readonly string[];
}

export type ResolvedBody = ResolvedSelect | ResolvedSet;

/** Both sides have as many columns as `types`. They may be of other types: the set's are those that can hold both. */
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
  /** Operands of `arrayJoin`, each expanded once however often it is written; there are no others in the select. */
  readonly arrayJoins: readonly ResolvedExpression[];
  readonly where: ResolvedExpression | undefined;
  /** Whether rows are aggregated: there is a GROUP BY, or an aggregate function outside a window. */
  readonly aggregated: boolean;
  readonly groupBy: readonly ResolvedExpression[];
  /** Without aggregation it filters rows. */
  readonly having: ResolvedExpression | undefined;
  readonly orderBy: readonly ResolvedOrder[];
  readonly limit: bigint | undefined;
  readonly offset: bigint | undefined;
}

/** What rows come from. `id` is unique in the whole query. */
export type Source = TableSource | CommonSource | DerivedSource | JoinSource;

export interface TableSource {
  readonly kind: "table";
  readonly id: number;
  readonly table: PublicTable;
}

export interface CommonSource {
  readonly kind: "common";
  readonly id: number;
  /** In `ResolvedQuery.common`. */
  readonly index: number;
}

export interface DerivedSource {
  readonly kind: "derived";
  readonly id: number;
  readonly body: ResolvedBody;
}

/** Columns of the side of an outer join that has no row are the type's default, not null. `on` is undefined for a cross join alone. */
export interface JoinSource {
  readonly kind: "join";
  readonly type: "inner" | "left" | "right" | "full" | "cross";
  readonly left: Source;
  readonly right: Source;
  readonly on: ResolvedExpression | undefined;
}

/** NULL and NaN sort last in both directions unless `nullsFirst`. */
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
  /** A number, negative when descending, or an interval; undefined is one. */
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
 * Integers are bigint, `nan` and `inf` are numbers. Dates are `2024-01-31`, date-times `2024-01-31 23:59:59`, with as many digits of
 * a fraction as the type has: also where the caller wrote a string that is compared with one.
 */
export interface Literal extends Node {
  readonly kind: "literal";
  readonly value: string | bigint | number | boolean | null;
}

export interface ColumnReference extends Node {
  readonly kind: "column";
  /** A `Source` of the select, not a join. */
  readonly source: number;
  /** Of the source: the place in the table's columns, or in the body's. */
  readonly index: number;
}

/** An arithmetic operator or ordinary function, by ClickHouse's own name for it. */
export interface FunctionCall extends Node {
  readonly kind: "call";
  readonly name: FunctionName;
  readonly arguments: readonly ResolvedExpression[];
}

export type FunctionName =
  | "plus"
  | "minus"
  | "multiply"
  | "divide"
  | "modulo"
  | "negate"
  | "equals"
  | "notEquals"
  | "less"
  | "lessOrEquals"
  | "greater"
  | "greaterOrEquals"
  | "and"
  | "or"
  | "not"
  | "isNull"
  | "isNotNull"
  | "like"
  | "notLike"
  | "ilike"
  | "notILike"
  /** Condition, value, condition, value, …, value. `if`, and CASE with and without an operand. */
  | "multiIf"
  | "coalesce"
  | "now"
  | "now64"
  | "today"
  | "toDate"
  | "toDateTime"
  | "toDateTime64"
  | "toStartOfMinute"
  | "toStartOfHour"
  | "toStartOfDay"
  | "toStartOfWeek"
  | "toStartOfMonth"
  | "toStartOfQuarter"
  | "toStartOfYear"
  | "formatDateTime"
  | "fromUnixTimestamp64Milli"
  | "toUnixTimestamp64Milli"
  | "toUnixTimestamp"
  /** One argument, the amount; the unit is in the type. */
  | "toInterval"
  | "lower"
  | "upper"
  | "substring"
  | "concat"
  | "length"
  | "trim"
  | "startsWith"
  | "endsWith"
  | "JSONExtractString"
  | "round"
  | "floor"
  | "ceil"
  | "abs"
  | "toString"
  | "toInt32"
  | "toInt64"
  | "toFloat64"
  | "has"
  | "hasAny"
  | "hasAll"
  | "array"
  | "arrayElement";

export type AggregateName =
  | "count"
  | "sum"
  | "avg"
  | "min"
  | "max"
  | "any"
  | "groupArray"
  | "groupUniqArray"
  | "uniq"
  | "uniqExact"
  | "quantile";

/** `countIf`, `sumIf` and FILTER are the aggregate with a filter. `count` of all rows has no argument. */
export interface Aggregate extends Node {
  readonly kind: "aggregate";
  readonly name: AggregateName;
  /** The level of a quantile. */
  readonly parameters: readonly number[];
  readonly arguments: readonly ResolvedExpression[];
  readonly distinct: boolean;
  readonly filter: ResolvedExpression | undefined;
}

export interface WindowCall extends Node {
  readonly kind: "window";
  readonly name: AggregateName | "row_number" | "rank" | "dense_rank" | "lag" | "lead" | "first_value" | "last_value";
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

/** A CAST to UInt8, Bool or an array, the node's type. To others it is a function. */
export interface Conversion extends Node {
  readonly kind: "cast";
  readonly operand: ResolvedExpression;
}

/** Null in the list or among the rows is no member; null IN anything is null. */
export interface Membership extends Node {
  readonly kind: "in";
  readonly negated: boolean;
  readonly operand: ResolvedExpression;
  readonly of: readonly ResolvedExpression[] | ResolvedBody;
}

/** Null without a row. `exists` asks only whether there is one. */
export interface ScalarSubquery extends Node {
  readonly kind: "subquery";
  readonly exists: boolean;
  readonly body: ResolvedBody;
}

/** An element of the array with this index in the select's `arrayJoins`. */
export interface ArrayJoinReference extends Node {
  readonly kind: "arrayJoin";
  readonly index: number;
}

export interface ArrayFilter extends Node {
  readonly kind: "arrayFilter";
  readonly array: ResolvedExpression;
  /** The number of the lambda's parameter. */
  readonly variable: number;
  readonly condition: ResolvedExpression;
}

/** The parameter of a lambda around it. Numbered by depth, so that equal lambdas have equal trees. */
export interface Variable extends Node {
  readonly kind: "variable";
  readonly number: number;
}
