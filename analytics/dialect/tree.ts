/*
 * Syntax tree of a query in the supported subset of ClickHouse's SELECT. The tree represents the complete source; the parser rejects syntax
 * without a node here. Names and types are not resolved yet.
 */

/** Source range in the caller's text, as offsets of UTF-16 code units; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

interface Node {
  readonly span: Span;
}

export type Query = Select | SetOperation;

/** Set operation. `with` belongs to the first branch, as in ClickHouse, but its names are visible in all branches. */
export interface SetOperation extends Node {
  readonly kind: "set";
  readonly operator: "union all" | "union distinct" | "except" | "except distinct";
  readonly left: Query;
  readonly right: Query;
}

export interface Select extends Node {
  readonly kind: "select";
  readonly with: readonly CommonTable[];
  readonly distinct: boolean;
  readonly columns: readonly Expression[];
  readonly from: From;
  readonly arrayJoin: ArrayJoin | undefined;
  readonly where: Expression | undefined;
  readonly groupBy: readonly Expression[];
  readonly having: Expression | undefined;
  readonly windows: readonly NamedWindow[];
  readonly orderBy: readonly Order[];
  readonly limitBy: LimitBy | undefined;
  readonly limit: Expression | undefined;
  readonly offset: Expression | undefined;
}

/** CTE `name AS (SELECT …)`, or ClickHouse's `expression AS name`. */
export interface CommonTable extends Node {
  readonly name: Identifier;
  readonly is: Query | { readonly kind: "expression"; readonly expression: Expression };
}

export interface Identifier extends Node {
  readonly text: string;
  readonly quoted: boolean;
}

export type From = TableReference | SubqueryReference | Join;

export interface TableReference extends Node {
  readonly kind: "table";
  readonly name: Identifier;
  readonly alias: Identifier | undefined;
}

export interface SubqueryReference extends Node {
  readonly kind: "derived";
  readonly query: Query;
  readonly alias: Identifier | undefined;
}

export interface Join extends Node {
  readonly kind: "join";
  readonly type: "inner" | "left" | "right" | "full" | "cross";
  readonly left: From;
  readonly right: From;
  readonly on: Expression | undefined;
  readonly using: readonly Identifier[];
}

/** `ARRAY JOIN array AS alias`. With `left`, a row whose array is empty is kept and gets the default element. */
export interface ArrayJoin extends Node {
  readonly left: boolean;
  readonly array: Expression;
  readonly alias: Identifier;
}

export interface Order extends Node {
  readonly expression: Expression;
  readonly descending: boolean;
  readonly nulls: "first" | "last" | undefined;
  readonly fill: Fill | undefined;
}

/** `LIMIT n OFFSET m BY expression, …`. */
export interface LimitBy extends Node {
  readonly limit: Expression;
  readonly offset: Expression | undefined;
  readonly by: readonly Expression[];
}

/** `WITH FILL FROM … TO … STEP …`. Each of the three parts is optional. */
export interface Fill extends Node {
  readonly from: Expression | undefined;
  readonly to: Expression | undefined;
  readonly step: Expression | undefined;
}

export interface Window extends Node {
  readonly partitionBy: readonly Expression[];
  readonly orderBy: readonly Order[];
  readonly frame: Frame | undefined;
}

export interface NamedWindow extends Node {
  readonly name: Identifier;
  readonly window: Window;
}

export interface Frame extends Node {
  readonly unit: "rows" | "range";
  readonly start: FrameBound;
  readonly end: FrameBound;
}

export type FrameBound =
  | { readonly kind: "unbounded preceding" | "current row" | "unbounded following" }
  | { readonly kind: "preceding" | "following"; readonly by: Expression };

export type Expression =
  | StringLiteral
  | NumberLiteral
  | NamedLiteral
  | Name
  | Star
  | Call
  | Unary
  | Binary
  | Between
  | In
  | Like
  | IsNull
  | Case
  | Cast
  | Interval
  | Subquery
  | ArrayLiteral
  | Element
  | Lambda
  | Aliased;

/** String literal with its unescaped text. */
export interface StringLiteral extends Node {
  readonly kind: "string";
  readonly value: string;
}

/** Number literal. Its digits are kept as in the source, because an Int64 does not fit into a JavaScript number. */
export interface NumberLiteral extends Node {
  readonly kind: "number";
  readonly text: string;
}

export interface NamedLiteral extends Node {
  readonly kind: "named";
  readonly value: "null" | "true" | "false" | "nan" | "inf";
}

/** Column name: `column` or `table.column`. */
export interface Name extends Node {
  readonly kind: "name";
  readonly parts: readonly Identifier[];
}

/** Star: `*` or `table.*`, including the argument of `count(*)`. */
export interface Star extends Node {
  readonly kind: "star";
  readonly of: Identifier | undefined;
}

/** Function call `name(parameters)(arguments)`; `parameters` is undefined without the first pair of parentheses. */
export interface Call extends Node {
  readonly kind: "call";
  readonly name: Identifier;
  readonly parameters: readonly Expression[] | undefined;
  readonly arguments: readonly Expression[];
  readonly distinct: boolean;
  readonly filter: Expression | undefined;
  readonly over: Window | Identifier | undefined;
}

export interface Unary extends Node {
  readonly kind: "unary";
  readonly operator: "-" | "not";
  readonly operand: Expression;
}

export type BinaryOperator = "and" | "or" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "/" | "%" | "||";

/** Binary operator. `==` is represented as `=`, and `<>` as `!=`. */
export interface Binary extends Node {
  readonly kind: "binary";
  readonly operator: BinaryOperator;
  readonly left: Expression;
  readonly right: Expression;
}

export interface Between extends Node {
  readonly kind: "between";
  readonly negated: boolean;
  readonly operand: Expression;
  readonly low: Expression;
  readonly high: Expression;
}

export interface In extends Node {
  readonly kind: "in";
  readonly negated: boolean;
  readonly operand: Expression;
  readonly of: readonly Expression[] | Query;
}

export interface Like extends Node {
  readonly kind: "like";
  readonly negated: boolean;
  readonly caseless: boolean;
  readonly operand: Expression;
  readonly pattern: Expression;
}

export interface IsNull extends Node {
  readonly kind: "isNull";
  readonly negated: boolean;
  readonly operand: Expression;
}

export interface Case extends Node {
  readonly kind: "case";
  readonly operand: Expression | undefined;
  readonly branches: readonly { readonly when: Expression; readonly then: Expression }[];
  readonly otherwise: Expression | undefined;
}

/** Cast: `CAST(x AS T)`, `CAST(x, 'T')` or `x::T`. The type is as in the source, without whitespace. */
export interface Cast extends Node {
  readonly kind: "cast";
  readonly operand: Expression;
  readonly type: string;
}

export type IntervalUnit =
  | "nanosecond"
  | "microsecond"
  | "millisecond"
  | "second"
  | "minute"
  | "hour"
  | "day"
  | "week"
  | "month"
  | "quarter"
  | "year";

export interface Interval extends Node {
  readonly kind: "interval";
  readonly amount: Expression;
  readonly unit: IntervalUnit;
}

/** Scalar subquery, or `EXISTS (…)`. */
export interface Subquery extends Node {
  readonly kind: "subquery";
  readonly exists: boolean;
  readonly query: Query;
}

export interface ArrayLiteral extends Node {
  readonly kind: "array";
  readonly elements: readonly Expression[];
}

/** Array element `array[index]`, counted from 1. */
export interface Element extends Node {
  readonly kind: "element";
  readonly array: Expression;
  readonly index: Expression;
}

export interface Lambda extends Node {
  readonly kind: "lambda";
  readonly parameters: readonly Identifier[];
  readonly body: Expression;
}

/** `expression AS alias`, which ClickHouse allows anywhere within an expression. */
export interface Aliased extends Node {
  readonly kind: "aliased";
  readonly expression: Expression;
  readonly alias: Identifier;
}
