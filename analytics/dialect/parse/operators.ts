import { QueryProblem } from "../problem.ts";
import type { BinaryOperator, Expression, Query } from "../tree.ts";
import type { Cursor } from "./cursor.ts";
import { aliasable, type Grammar } from "./grammar.ts";
import { readOpened, readOperand } from "./operands.ts";
import { readType } from "./types.ts";

/*
 * Operator precedence as in ClickHouse's parser. An operator with a higher value binds first; operators with equal values associate to the
 * left. NOT has a lower precedence than comparisons, and BETWEEN has a lower precedence than `=`, so that `a BETWEEN 1 AND b = c` compares
 * `a` with `b = c`.
 */
const AUTHORITY = {
  or: 3,
  and: 4,
  not: 5,
  isNull: 6,
  between: 7,
  comparison: 9,
  concat: 10,
  sum: 11,
  product: 12,
  suffix: 14,
};

const BINARY: Readonly<Record<string, { readonly operator: BinaryOperator; readonly power: number }>> = {
  or: { operator: "or", power: AUTHORITY.or },
  and: { operator: "and", power: AUTHORITY.and },
  "=": { operator: "=", power: AUTHORITY.comparison },
  "==": { operator: "=", power: AUTHORITY.comparison },
  "!=": { operator: "!=", power: AUTHORITY.comparison },
  "<>": { operator: "!=", power: AUTHORITY.comparison },
  "<": { operator: "<", power: AUTHORITY.comparison },
  "<=": { operator: "<=", power: AUTHORITY.comparison },
  ">": { operator: ">", power: AUTHORITY.comparison },
  ">=": { operator: ">=", power: AUTHORITY.comparison },
  "||": { operator: "||", power: AUTHORITY.concat },
  "+": { operator: "+", power: AUTHORITY.sum },
  "-": { operator: "-", power: AUTHORITY.sum },
  "*": { operator: "*", power: AUTHORITY.product },
  "/": { operator: "/", power: AUTHORITY.product },
  "%": { operator: "%", power: AUTHORITY.product },
  mod: { operator: "%", power: AUTHORITY.product },
};

/** ClickHouse operators that this dialect does not support. */
const NOT_SERVED: ReadonlySet<string> = new Set(["<=>", "?", "->", "div", "regexp", "rlike", "global"]);

/** Parses operands and operators with at least the given precedence. */
export function readExpression(grammar: Grammar, authorityMin = 0): Expression {
  const { cursor } = grammar;
  let left = readPrefixed(grammar);
  for (;;) {
    const token = cursor.peek();
    if (token.kind !== "sign" && token.kind !== "word") return left;
    const word = token.text.toLowerCase();
    const binary = Object.hasOwn(BINARY, word) ? BINARY[word] : undefined;
    if (binary !== undefined) {
      if (binary.power < authorityMin) return left;
      cursor.next();
      const right = cursor.nested(() => readExpression(grammar, binary.power + 1));
      left = { kind: "binary", operator: binary.operator, left, right, span: spanOf(left, right) };
    } else if (NOT_SERVED.has(word)) {
      throw cursor.notServed(`the operator ${word.toUpperCase()}`);
    } else {
      const next = readSpecial(grammar, left, authorityMin);
      if (next === undefined) return left;
      left = next;
    }
  }
}

/**
 * Parses IS NULL, BETWEEN, IN, LIKE and their negations. Returns `undefined` if another operator follows, or one with a lower precedence.
 */
function readSpecial(grammar: Grammar, operand: Expression, authorityMin: number): Expression | undefined {
  const { cursor } = grammar;
  if (cursor.isWord("is")) return authorityMin > AUTHORITY.isNull ? undefined : readIs(cursor, operand);
  const negated = cursor.isWord("not");
  const word = cursor.peek(negated ? 1 : 0).text.toLowerCase();
  const authority = word === "between" ? AUTHORITY.between : AUTHORITY.comparison;
  if (authority < authorityMin) return undefined;
  const take = (): boolean => cursor.takeWords(...(negated ? ["not", word] : [word]));
  if (word === "between" && take()) return readBetween(grammar, operand, negated);
  if (word === "in" && take()) return readIn(grammar, operand, negated);
  if ((word === "like" || word === "ilike") && take()) {
    const pattern = cursor.nested(() => readExpression(grammar, AUTHORITY.comparison + 1));
    return { kind: "like", negated, caseless: word === "ilike", operand, pattern, span: spanOf(operand, pattern) };
  }
  return undefined;
}

function readIs(cursor: Cursor, operand: Expression): Expression {
  cursor.next();
  const negated = cursor.takeWords("not");
  if (!cursor.isWord("null")) throw cursor.notServed("IS with anything but NULL");
  cursor.next();
  return { kind: "isNull", negated, operand, span: cursor.since(operand) };
}

function readBetween(grammar: Grammar, operand: Expression, negated: boolean): Expression {
  const { cursor } = grammar;
  // ClickHouse takes the AND of BETWEEN as an operand of a preceding NOT and then fails.
  if (cursor.isWord("not")) throw cursor.problem("a NOT after BETWEEN needs parentheses");
  const low = cursor.nested(() => readExpression(grammar, AUTHORITY.comparison));
  cursor.expectWord("and");
  const high = cursor.nested(() => readExpression(grammar, AUTHORITY.comparison));
  return { kind: "between", negated, operand, low, high, span: spanOf(operand, high) };
}

function readIn(grammar: Grammar, operand: Expression, negated: boolean): Expression {
  const { cursor } = grammar;
  const start = cursor.peek();
  if (!cursor.isSign("(")) {
    const right = cursor.nested(() => readExpression(grammar, AUTHORITY.comparison + 1));
    grammar.refuse("in", notAList(right));
    return { kind: "in", negated, operand, of: [right], span: spanOf(operand, right) };
  }
  const of = cursor.nested(() => readInList(grammar));
  const span = cursor.since(operand);
  // ClickHouse parses `a IN (1) + 1` like `a IN (1 + 1)`.
  const authority = BINARY[cursor.peek().text]?.power ?? 0;
  if (authority > AUTHORITY.comparison || cursor.isSign("::") || cursor.isSign("[") || cursor.isSign(".")) {
    grammar.refuse("in", notAList({ span: cursor.since(start) }));
  }
  return { kind: "in", negated, operand, of, span };
}

function readInList(grammar: Grammar): readonly Expression[] | Query {
  const { cursor } = grammar;
  if (cursor.isSign(")", 1)) throw cursor.problem("the list after IN is empty");
  // Reads a subquery, or the opening parenthesis and the first item.
  const { expression, closed } = readOpened(grammar);
  if (closed) return expression.kind === "subquery" && !expression.exists ? expression.query : [expression];
  const items = [expression];
  while (cursor.takeSign(",")) items.push(aliasable(grammar));
  cursor.expectSign(")");
  return items;
}

const notAList = ({ span }: { readonly span: Expression["span"] }): QueryProblem =>
  new QueryProblem(
    "invalid_analytics_query",
    "after IN, a list of literals or a subquery in parentheses is expected",
    span,
  );

/** Parses NOT, a sign, or an operand with its postfix operators. */
function readPrefixed(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.peek();
  if (cursor.takeWords("not")) {
    const operand = cursor.nested(() => readExpression(grammar, AUTHORITY.not + 1));
    return { kind: "unary", operator: "not", operand, span: spanOf(first, operand) };
  }
  if (cursor.takeSign("+")) return cursor.nested(() => readPrefixed(grammar));
  if (!cursor.takeSign("-"))
    return readSuffixes(
      grammar,
      cursor.nested(() => readOperand(grammar)),
    );
  if (cursor.peek().kind === "number") {
    // The sign is part of a number literal: `-1::Int64` casts -1, but `-a::Int64` negates a cast.
    const operand = readOperand(grammar);
    return readSuffixes(grammar, { kind: "unary", operator: "-", operand, span: spanOf(first, operand) });
  }
  const operand = cursor.nested(() => readPrefixed(grammar));
  return { kind: "unary", operator: "-", operand, span: spanOf(first, operand) };
}

function readSuffixes(grammar: Grammar, operand: Expression): Expression {
  const { cursor } = grammar;
  let expression = operand;
  for (;;) {
    if (cursor.takeSign("[")) {
      const index = cursor.nested(() => aliasable(grammar));
      cursor.expectSign("]");
      expression = { kind: "element", array: expression, index, span: cursor.since(operand) };
    } else if (cursor.takeSign("::")) {
      const type = readType(cursor);
      expression = { kind: "cast", operand: expression, type, span: cursor.since(operand) };
    } else if (cursor.isSign(".") || (cursor.peek().kind === "number" && cursor.peek().text.startsWith("."))) {
      throw cursor.notServed("the element of a tuple");
    } else {
      return expression;
    }
  }
}

const spanOf = (first: { readonly span: Expression["span"] }, last: Expression): Expression["span"] => ({
  start: first.span.start,
  end: last.span.end,
});
