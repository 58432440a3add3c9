import type { Expression, Identifier, Name } from "../tree.ts";
import { readCall } from "./calls.ts";
import type { Cursor } from "./cursor.ts";
import { aliasable, type Grammar, list, withAlias } from "./grammar.ts";
import { readInterval, startsInterval } from "./interval.ts";
import { NO_EXPRESSION } from "./reserved.ts";
import { readType, readTypeText } from "./types.ts";

const NAMED: Readonly<Record<string, "null" | "true" | "false" | "nan" | "inf">> = {
  null: "null",
  true: "true",
  false: "false",
  nan: "nan",
  inf: "inf",
  infinity: "inf",
};

/** Parses an operand: a literal, a name, a call, or a bracketed expression. */
export function readOperand(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const token = cursor.peek();
  switch (token.kind) {
    case "string":
      cursor.next();
      return { kind: "string", value: token.text, span: token.span };
    case "number":
      cursor.next();
      return { kind: "number", text: token.text, span: token.span };
    case "word":
      return readWord(grammar);
    case "quotedName":
      return readNameOrCall(grammar);
    case "end":
      throw cursor.unexpected("an expression");
    case "sign":
      if (token.text === "(") return readParenthesised(grammar);
      if (token.text === "[") return readArray(grammar);
      if (token.text === "*") throw cursor.problem("`*` stands in SELECT and in `count(*)` alone");
      if (token.text === "{") throw cursor.notServed("a query parameter");
      throw cursor.unexpected("an expression");
  }
}

function readWord(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const token = cursor.peek();
  const word = token.text.toLowerCase();
  const isCall = cursor.isSign("(", 1);
  const named = Object.hasOwn(NAMED, word) ? NAMED[word] : undefined;
  if (named !== undefined) {
    cursor.next();
    return { kind: "named", value: named, span: token.span };
  }
  if (word === "case") return readCase(grammar);
  if (word === "cast" && isCall) return readCast(grammar);
  if (word === "exists" && isCall) return readExists(grammar);
  if (word === "interval" && startsInterval(cursor)) return readInterval(grammar);
  if ((word === "date" || word === "timestamp") && cursor.peek(1).kind === "string") return readDate(cursor);
  if (word === "columns" && isCall) throw cursor.notServed("COLUMNS(…)");
  if (NO_EXPRESSION.has(word)) throw cursor.unexpected("an expression");
  return readNameOrCall(grammar);
}

function readNameOrCall(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.expectName("a name");
  if (cursor.isSign("(")) return readCall(grammar, first);
  const parts: Identifier[] = [first];
  while (cursor.isSign(".")) {
    if (parts.length === 2) throw cursor.problem("a name has at most two parts: the table's and the column's");
    cursor.next();
    if (cursor.isSign("*")) throw cursor.problem("`table.*` stands in SELECT alone");
    parts.push(cursor.expectName("the name of a column"));
  }
  if (parts.length === 2 && cursor.isSign("(")) throw cursor.problem("a function's name has one part");
  return { kind: "name", parts, span: cursor.since(first) } satisfies Name;
}

/** Parses `(expression)` or `(SELECT …)`. The tree does not represent parentheses. */
function readParenthesised(grammar: Grammar): Expression {
  const { cursor } = grammar;
  if (cursor.isSign(")", 1)) throw cursor.notServed("an empty tuple");
  const { expression, closed } = readOpened(grammar);
  if (!closed) throw cursor.notServed("a tuple");
  return expression;
}

/**
 * Parses `(` and the expression or subquery after it, and `)` if it follows. If a comma follows instead, the expression is the first item
 * of a list, and `closed` is false.
 */
export function readOpened(grammar: Grammar): { expression: Expression; closed: boolean } {
  const { cursor } = grammar;
  const first = cursor.peek();
  cursor.expectSign("(");
  const inner = startsSelect(cursor) ? undefined : grammar.expression();
  // In `((SELECT 1) UNION ALL …)` the parenthesized subquery is the first branch of a query.
  const isBranch = inner?.kind === "subquery" && !inner.exists && startsSetOperator(cursor);
  if (inner !== undefined && !isBranch) {
    const expression = withAlias(grammar, inner);
    if (cursor.isSign(",")) return { expression, closed: false };
    cursor.expectSign(")");
    return { expression, closed: true };
  }
  const query = inner?.kind === "subquery" ? grammar.continueQuery(inner.query) : grammar.query();
  cursor.expectSign(")");
  return { expression: { kind: "subquery", exists: false, query, span: cursor.since(first) }, closed: true };
}

export const startsSelect = (cursor: Cursor): boolean => cursor.isWord("select") || cursor.isWord("with");

const startsSetOperator = (cursor: Cursor): boolean =>
  cursor.isWord("union") || cursor.isWord("except") || cursor.isWord("intersect");

function readArray(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.next();
  const elements = cursor.isSign("]") ? [] : list(cursor, () => aliasable(grammar));
  cursor.expectSign("]");
  return { kind: "array", elements, span: cursor.since(first) };
}

function readCase(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.next();
  const operand = cursor.isWord("when") ? undefined : aliasable(grammar);
  const branches: { when: Expression; then: Expression }[] = [];
  if (!cursor.isWord("when")) throw cursor.unexpected("WHEN");
  while (cursor.takeWords("when")) {
    const when = aliasable(grammar);
    cursor.expectWord("then");
    // biome-ignore lint/suspicious/noThenProperty: the word of the syntax; a branch is never awaited.
    branches.push({ when, then: aliasable(grammar) });
  }
  const otherwise = cursor.takeWords("else") ? aliasable(grammar) : undefined;
  cursor.expectWord("end");
  return { kind: "case", operand, branches, otherwise, span: cursor.since(first) };
}

/** Parses `CAST(x AS T)` or `CAST(x, 'T')`. */
function readCast(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.next();
  cursor.expectSign("(");
  const inner = grammar.expression();
  // In `CAST(x AS y AS T)`, the first AS gives the operand an alias.
  const operand = cursor.isWord("as", 2) ? withAlias(grammar, inner) : inner;
  let type: string;
  if (cursor.takeSign(",")) {
    const token = cursor.next();
    if (token.kind !== "string") throw cursor.problem("the type of CAST is a string or stands after AS");
    type = readTypeText(token.text, token.span);
  } else {
    cursor.expectWord("as");
    type = readType(cursor);
  }
  cursor.expectSign(")");
  return { kind: "cast", operand, type, span: cursor.since(first) };
}

function readExists(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.next();
  cursor.expectSign("(");
  const query = grammar.query();
  cursor.expectSign(")");
  return { kind: "subquery", exists: true, query, span: cursor.since(first) };
}

/** Parses `DATE '2024-01-31'`, which is equivalent to `toDate('2024-01-31')`. */
function readDate(cursor: Cursor): Expression {
  const word = cursor.next();
  const string = cursor.next();
  const text = word.text.toLowerCase() === "date" ? "toDate" : "toDateTime";
  const value: Expression = { kind: "string", value: string.text, span: string.span };
  return {
    kind: "call",
    name: { text, quoted: false, span: word.span },
    parameters: undefined,
    arguments: [value],
    distinct: false,
    filter: undefined,
    over: undefined,
    span: cursor.since(word),
  };
}
