import type { Call, Expression, Frame, FrameBound, Name, Order, Window } from "../tree.ts";

/*
 * Names result columns without an alias as ClickHouse does: after their expression, in which operators are written as functions and some
 * keywords are normalized. Clients rely on these names.
 */

export interface Naming {
  /** Returns the name of a column. */
  readonly nameOf: (name: Name) => string;
  /** Query text, from which the spelling of function names is taken. */
  readonly text: string;
  /** Returns the next subquery number. Subqueries in the columns of a SELECT are numbered in order. */
  readonly nextSubquery: () => number;
}

export function writtenName(expression: Expression, naming: Naming): string {
  const write = (one: Expression): string => writtenName(one, naming);
  const apply = (name: string, ...args: readonly Expression[]) => `${name}(${args.map(write).join(", ")})`;
  switch (expression.kind) {
    case "string":
      return quoted(expression.value);
    case "number":
      return numberText(expression.text);
    case "named":
      return expression.value === "null" ? "NULL" : expression.value;
    case "name":
      return naming.nameOf(expression);
    case "star":
      return "*";
    case "call":
      return callText(expression, write, naming.text);
    case "unary":
      if (expression.operator === "not") return apply("not", expression.operand);
      return expression.operand.kind === "number"
        ? `-${numberText(expression.operand.text)}`
        : apply("negate", expression.operand);
    case "binary":
      return apply(OPERATORS[expression.operator], ...operands(expression));
    case "between": {
      const [operand, low, high] = [expression.operand, expression.low, expression.high].map(write);
      return expression.negated
        ? `or(less(${operand}, ${low}), greater(${operand}, ${high}))`
        : `and(greaterOrEquals(${operand}, ${low}), lessOrEquals(${operand}, ${high}))`;
    }
    case "in": {
      const operand = write(expression.operand);
      const list = Array.isArray(expression.of) ? expression.of.map(write) : [`_subquery_${naming.nextSubquery()}`];
      const right = list.length === 1 ? list[0] : `(${list.join(", ")})`;
      return `${expression.negated ? "notIn" : "in"}(${operand}, ${right})`;
    }
    case "like": {
      const name = expression.caseless ? "ilike" : "like";
      return apply(
        expression.negated ? (expression.caseless ? "notILike" : "notLike") : name,
        expression.operand,
        expression.pattern,
      );
    }
    case "isNull":
      return apply(expression.negated ? "isNotNull" : "isNull", expression.operand);
    case "case": {
      const branches = expression.branches.flatMap(({ when, then }) => [write(when), write(then)]);
      const otherwise = expression.otherwise ? write(expression.otherwise) : "NULL";
      return expression.operand
        ? `caseWithExpression(${[write(expression.operand), ...branches, otherwise].join(", ")})`
        : `multiIf(${[...branches, otherwise].join(", ")})`;
    }
    case "cast":
      return `CAST(${write(expression.operand)}, ${quoted(expression.type)})`;
    case "interval":
      return apply(`toInterval${expression.unit[0]?.toUpperCase()}${expression.unit.slice(1)}`, expression.amount);
    case "subquery":
      // For EXISTS, ClickHouse counts one more subquery.
      if (expression.exists) naming.nextSubquery();
      return expression.exists ? `exists(_subquery_${naming.nextSubquery()})` : `_subquery_${naming.nextSubquery()}`;
    case "array":
      return `[${elementTexts(expression.elements, write).join(", ")}]`;
    case "element":
      return apply("arrayElement", expression.array, expression.index);
    case "lambda":
      return `lambda(tuple(${expression.parameters.map(({ text }) => text).join(", ")}), ${write(expression.body)})`;
    case "aliased":
      // Called only to count the subqueries of the expression.
      write(expression.expression);
      return expression.alias.text;
  }
}

const OPERATORS = {
  and: "and",
  or: "or",
  "=": "equals",
  "!=": "notEquals",
  "<": "less",
  "<=": "lessOrEquals",
  ">": "greater",
  ">=": "greaterOrEquals",
  "+": "plus",
  "-": "minus",
  "*": "multiply",
  "/": "divide",
  "%": "modulo",
  "||": "concat",
} as const;

const FLAT: readonly string[] = ["and", "or", "||"];

/** Returns the operands of a chain: `a AND b AND c` is one call with three arguments. */
function operands(expression: Extract<Expression, { kind: "binary" }>): readonly Expression[] {
  const { operator, left, right } = expression;
  if (!FLAT.includes(operator)) return [left, right];
  return [left, right].flatMap((side) =>
    side.kind === "binary" && side.operator === operator ? operands(side) : [side],
  );
}

/** Returns the text of a number. Integers are written as in the source; floats always have a point or an exponent. */
function numberText(text: string): string {
  const digits = text.replaceAll("_", "");
  if (/^\d+$/.test(digits)) return String(BigInt(digits));
  const value = String(Number(digits));
  return /[.e]/.test(value) ? value.replace("e+", "e") : `${value}.`;
}

/** Returns the texts of the elements. If any element is a float, all elements are written as floats. */
function elementTexts(elements: readonly Expression[], write: (one: Expression) => string): readonly string[] {
  const texts = elements.map(write);
  const float = elements.every(({ kind }) => kind === "number") && texts.some((text) => /[.e]/.test(text));
  return float ? texts.map((text) => (/[.e]/.test(text) ? text : `${text}.`)) : texts;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "'": "\\'",
  "\n": "\\n",
  "\t": "\\t",
  "\r": "\\r",
  "\b": "\\b",
  "\f": "\\f",
  "\0": "\\0",
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what ClickHouse escapes
const quoted = (text: string): string => `'${text.replace(/[\\'\n\t\r\x08\f\0]/g, (one) => ESCAPES[one] ?? one)}'`;

function callText(call: Call, write: (one: Expression) => string, text: string): string {
  const { name, parameters, distinct, filter, over } = call;
  const args = call.arguments.filter(({ kind }) => kind !== "star");
  const spelling = text.slice(name.span.start, name.span.end);
  const spelled = spelling.toLowerCase() === name.text.toLowerCase() ? spelling : name.text;
  const base = name.text.toLowerCase() === "trim" ? "trimBoth" : spelled;
  const full = `${base}${distinct ? "Distinct" : ""}${filter ? "If" : ""}`;
  const levels = parameters ? `(${parameters.map(write).join(", ")})` : "";
  const called = `${full}${levels}(${[...args, ...(filter ? [filter] : [])].map(write).join(", ")})`;
  if (!over) return called;
  return `${called} OVER ${"text" in over ? over.text : `(${windowText(over, write)})`}`;
}

function windowText({ partitionBy, orderBy, frame }: Window, write: (one: Expression) => string): string {
  return [
    ...(partitionBy.length > 0 ? [`PARTITION BY ${partitionBy.map(write).join(", ")}`] : []),
    ...(orderBy.length > 0 ? [`ORDER BY ${orderBy.map((order) => orderText(order, write)).join(", ")}`] : []),
    ...(frame ? [frameText(frame, write)] : []),
  ].join(" ");
}

const orderText = ({ expression, descending, nulls }: Order, write: (one: Expression) => string): string =>
  `${write(expression)} ${descending ? "DESC" : "ASC"}${nulls ? ` NULLS ${nulls.toUpperCase()}` : ""}`;

function frameText({ unit, start, end }: Frame, write: (one: Expression) => string): string {
  const boundText = (bound: FrameBound) =>
    "by" in bound ? `${write(bound.by)} ${bound.kind.toUpperCase()}` : bound.kind.toUpperCase();
  return `${unit.toUpperCase()} BETWEEN ${boundText(start)} AND ${boundText(end)}`;
}
