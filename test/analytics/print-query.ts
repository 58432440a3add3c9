import type {
  Call,
  Expression,
  Frame,
  FrameBound,
  From,
  Identifier,
  Order,
  Query,
  Select,
  Window,
} from "../../analytics/dialect/tree.ts";

/**
 * Writes a tree as ClickHouse's SQL, with parentheses around every operator. It shows what the parser has read: the engine must find the same in
 * the printed text as in the caller's.
 */
export function printQuery(query: Query): string {
  if (query.kind === "select") return printSelect(query);
  const branch = (side: Query): string => (side.kind === "set" ? `(${printQuery(side)})` : printQuery(side));
  return `${printQuery(query.left)} ${query.operator.toUpperCase()} ${branch(query.right)}`;
}

function printSelect(select: Select): string {
  const common = select.with.map(({ name, is }) =>
    is.kind === "expression"
      ? `${printExpression(is.expression)} AS ${printName(name)}`
      : `${printName(name)} AS (${printQuery(is)})`,
  );
  const { limitBy } = select;
  const windows = select.windows.map(({ name, window }) => `${printName(name)} AS ${printWindow(window)}`);
  return clauses([
    ["WITH", common.join(", ")],
    [select.distinct ? "SELECT DISTINCT" : "SELECT", select.columns.map(printItem).join(", ")],
    ["FROM", printFrom(select.from)],
    [
      select.arrayJoin?.left === true ? "LEFT ARRAY JOIN" : "ARRAY JOIN",
      select.arrayJoin === undefined
        ? ""
        : `${printExpression(select.arrayJoin.array)} AS ${printName(select.arrayJoin.alias)}`,
    ],
    ["WHERE", optional(select.where)],
    ["GROUP BY", select.groupBy.map(printExpression).join(", ")],
    ["HAVING", optional(select.having)],
    ["WINDOW", windows.join(", ")],
    ["ORDER BY", select.orderBy.map(printOrder).join(", ")],
    ["LIMIT", limitBy === undefined ? "" : optional(limitBy.limit)],
    ["OFFSET", optional(limitBy?.offset)],
    ["BY", limitBy === undefined ? "" : limitBy.by.map(printItem).join(", ")],
    ["LIMIT", optional(select.limit)],
    ["OFFSET", optional(select.offset)],
  ]);
}

const clauses = (parts: readonly (readonly [string, string])[]): string =>
  parts.flatMap(([word, text]) => (text === "" ? [] : [`${word} ${text}`])).join(" ");

const optional = (expression: Expression | undefined): string =>
  expression === undefined ? "" : printExpression(expression);

function printFrom(from: From): string {
  const alias = (name: Identifier | undefined): string => (name === undefined ? "" : ` AS ${printName(name)}`);
  switch (from.kind) {
    case "table":
      return printName(from.name) + alias(from.alias);
    case "derived":
      return `(${printQuery(from.query)})${alias(from.alias)}`;
    case "join": {
      const on = from.on === undefined ? "" : ` ON ${printExpression(from.on)}`;
      const using = from.using.length === 0 ? "" : ` USING (${from.using.map(printName).join(", ")})`;
      return `${printFrom(from.left)} ${from.type.toUpperCase()} JOIN ${printFrom(from.right)}${on}${using}`;
    }
  }
}

function printOrder({ expression, descending, nulls, fill }: Order): string {
  const nullsPart = nulls === undefined ? "" : ` NULLS ${nulls.toUpperCase()}`;
  const order = `${printExpression(expression)}${descending ? " DESC" : ""}${nullsPart}`;
  if (fill === undefined) return order;
  const parts = clauses([
    ["FROM", optional(fill.from)],
    ["TO", optional(fill.to)],
    ["STEP", optional(fill.step)],
  ]);
  return `${order} WITH FILL ${parts}`;
}

function printWindow(window: Window): string {
  const frame = window.frame === undefined ? "" : printFrame(window.frame);
  const parts = clauses([
    ["PARTITION BY", window.partitionBy.map(printExpression).join(", ")],
    ["ORDER BY", window.orderBy.map(printOrder).join(", ")],
  ]);
  return `(${parts} ${frame})`;
}

const printFrame = ({ unit, start, end }: Frame): string =>
  `${unit.toUpperCase()} BETWEEN ${printBound(start)} AND ${printBound(end)}`;

const printBound = (bound: FrameBound): string =>
  "by" in bound ? `${printExpression(bound.by)} ${bound.kind.toUpperCase()}` : bound.kind.toUpperCase();

/** An item of SELECT or of a list of arguments: its alias needs no parentheses around it. */
const printItem = (expression: Expression): string =>
  expression.kind === "aliased"
    ? `${printExpression(expression.expression)} AS ${printName(expression.alias)}`
    : printExpression(expression);

export function printExpression(expression: Expression): string {
  switch (expression.kind) {
    case "string":
      return printString(expression.value, "'");
    case "number":
      return expression.text;
    case "named":
      return expression.value;
    case "name":
      return expression.parts.map(printName).join(".");
    case "star":
      return expression.of === undefined ? "*" : `${printName(expression.of)}.*`;
    case "call":
      return printCall(expression);
    case "unary": {
      const { operator, operand } = expression;
      // `- 1` is the number -1, and `-(1)` a negation.
      if (operator === "-" && operand.kind === "number") return `-${operand.text}`;
      if (operator === "-" && operand.kind === "named") return `-${operand.value}`;
      return `(${operator}(${printExpression(operand)}))`;
    }
    case "binary": {
      const { left, operator, right } = expression;
      // The engine reads `a AND b AND c` as one AND of three.
      const chained = ["and", "or", "||"].includes(operator) && left.kind === "binary" && left.operator === operator;
      if (chained) return `(${printExpression(left).slice(1, -1)} ${operator} ${printExpression(right)})`;
      return infix(left, operator, right);
    }
    case "between": {
      const { operand, negated, low, high } = expression;
      return `(${printExpression(operand)} ${not(negated)}BETWEEN ${printExpression(low)} AND ${printExpression(high)})`;
    }
    case "in": {
      const of = "kind" in expression.of ? printQuery(expression.of) : expression.of.map(printItem).join(", ");
      return `(${printExpression(expression.operand)} ${not(expression.negated)}IN (${of}))`;
    }
    case "like": {
      const { operand, negated, caseless, pattern } = expression;
      return infix(operand, `${not(negated)}${caseless ? "ILIKE" : "LIKE"}`, pattern);
    }
    case "isNull":
      return `(${printExpression(expression.operand)} IS ${not(expression.negated)}NULL)`;
    case "case": {
      const operand = expression.operand === undefined ? "" : ` ${printExpression(expression.operand)}`;
      const branches = expression.branches.map(
        (branch) => ` WHEN ${printExpression(branch.when)} THEN ${printExpression(branch.then)}`,
      );
      const otherwise = expression.otherwise === undefined ? "" : ` ELSE ${printExpression(expression.otherwise)}`;
      return `CASE${operand}${branches.join("")}${otherwise} END`;
    }
    case "cast":
      return `${printExpression(expression.operand)}::${expression.type}`;
    case "interval":
      return `INTERVAL ${printExpression(expression.amount)} ${expression.unit.toUpperCase()}`;
    case "subquery":
      return `${expression.exists ? "EXISTS " : ""}(${printQuery(expression.query)})`;
    case "array":
      return `[${expression.elements.map(printItem).join(",")}]`;
    case "element":
      return `${printExpression(expression.array)}[${printExpression(expression.index)}]`;
    case "lambda":
      return `(${expression.parameters.map(printName).join(", ")}) -> ${printExpression(expression.body)}`;
    case "aliased":
      return `(${printItem(expression)})`;
  }
}

function printCall({ name, parameters, arguments: values, distinct, filter, over }: Call): string {
  const first = parameters === undefined ? "" : `(${parameters.map(printItem).join(", ")})`;
  const second = `(${distinct ? "DISTINCT " : ""}${values.map(printItem).join(", ")})`;
  const filterPart = filter === undefined ? "" : ` FILTER (WHERE ${printExpression(filter)})`;
  const overPart = over === undefined ? "" : ` OVER ${"text" in over ? printName(over) : printWindow(over)}`;
  return name.text + first + second + filterPart + overPart;
}

const infix = (left: Expression, operator: string, right: Expression): string =>
  `(${printExpression(left)} ${operator} ${printExpression(right)})`;

const not = (negated: boolean): string => (negated ? "NOT " : "");

/** Always in quotes, so that no name is taken for a word of the grammar. */
const printName = ({ text }: Identifier): string => printString(text, "`");

const printString = (text: string, quoteMark: "'" | "`"): string =>
  quoteMark + text.replace(/[\\'`]/g, "\\$&").replaceAll("\0", "\\0") + quoteMark;
