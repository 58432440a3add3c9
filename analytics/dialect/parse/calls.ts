import type { Call, Expression, Fill, Frame, FrameBound, Identifier, Lambda, Order, Window } from "../tree.ts";
import type { Cursor } from "./cursor.ts";
import { aliasable, type Grammar, list } from "./grammar.ts";

/** Parses `name(parameters)(arguments) FILTER (WHERE …) OVER …`; the cursor is at the first parenthesis. */
export function readCall(grammar: Grammar, name: Identifier): Call {
  const { cursor } = grammar;
  let read = readArguments(grammar, name);
  let parameters: readonly Expression[] | undefined;
  if (cursor.isSign("(")) {
    if (read.distinct) throw cursor.problem("DISTINCT stands in the second pair of parentheses");
    if (cursor.isSign(")", 1)) throw cursor.problem("the second pair of parentheses is empty");
    parameters = read.values;
    read = readArguments(grammar, name);
  }
  const filter = readFilter(grammar);
  if (cursor.isWord("respect") || cursor.isWord("ignore")) {
    if (cursor.isWord("nulls", 1)) throw cursor.notServed("RESPECT NULLS or IGNORE NULLS");
  }
  const over = cursor.takeWords("over") ? readOver(grammar) : undefined;
  const { distinct, values } = read;
  return { kind: "call", name, parameters, arguments: values, distinct, filter, over, span: cursor.since(name) };
}

function readArguments(grammar: Grammar, name: Identifier): { distinct: boolean; values: readonly Expression[] } {
  const { cursor } = grammar;
  cursor.expectSign("(");
  const nothing = cursor.isSign(")", 1);
  const distinct = !nothing && cursor.takeWords("distinct");
  if (!distinct && !nothing && cursor.isWord("all") && !cursor.isSign(",", 1)) cursor.next();
  const star = cursor.peek();
  if (name.text.toLowerCase() === "count" && cursor.isSign("*") && cursor.isSign(")", 1)) {
    cursor.next();
    cursor.next();
    return { distinct, values: [{ kind: "star", of: undefined, span: star.span }] };
  }
  if (cursor.isWord("select") || cursor.isWord("with")) {
    throw cursor.problem("a subquery as an argument needs parentheses of its own");
  }
  const read = (): Expression => cursor.nested(() => readLambda(grammar) ?? aliasable(grammar));
  const values = cursor.isSign(")") ? [] : [...list(cursor, read), ...readFromFor(grammar, name)];
  cursor.expectSign(")");
  return { distinct, values };
}

/** Parses the rest of `substring(s FROM 1 FOR 3)`, which means `substring(s, 1, 3)`. */
function readFromFor(grammar: Grammar, name: Identifier): readonly Expression[] {
  const { cursor } = grammar;
  if (name.text.toLowerCase() !== "substring" || !cursor.takeWords("from")) return [];
  const offset = aliasable(grammar);
  return cursor.takeWords("for") ? [offset, aliasable(grammar)] : [offset];
}

function readFilter(grammar: Grammar): Expression | undefined {
  const { cursor } = grammar;
  if (!cursor.isWord("filter") || !cursor.isSign("(", 1)) return undefined;
  cursor.next();
  cursor.next();
  cursor.expectWord("where");
  const filter = aliasable(grammar);
  cursor.expectSign(")");
  return filter;
}

function readOver(grammar: Grammar): Window | Identifier {
  if (!grammar.cursor.isSign("(")) return grammar.cursor.expectName("the name of a window");
  return readWindow(grammar);
}

/** Parses `(PARTITION BY … ORDER BY … ROWS …)`. */
export function readWindow(grammar: Grammar): Window {
  const { cursor } = grammar;
  const first = cursor.peek();
  cursor.expectSign("(");
  const startsPart = ["partition", "order", "rows", "range", "groups"].some((word) => cursor.isWord(word));
  if (!startsPart && !cursor.isSign(")")) throw cursor.problem("a window that is made from another one is not served");
  const partitionBy = cursor.takeWords("partition", "by") ? list(cursor, () => aliasable(grammar)) : [];
  const orderBy = cursor.takeWords("order", "by") ? list(cursor, () => readOrder(grammar)) : [];
  const frame = readFrame(grammar);
  cursor.expectSign(")");
  return { partitionBy, orderBy, frame, span: cursor.since(first) };
}

function readFrame(grammar: Grammar): Frame | undefined {
  const { cursor } = grammar;
  const first = cursor.peek();
  if (cursor.isWord("groups")) throw cursor.notServed("a frame of GROUPS");
  const unit = cursor.takeWords("rows") ? "rows" : cursor.takeWords("range") ? "range" : undefined;
  if (unit === undefined) return undefined;
  const between = cursor.takeWords("between");
  const start = readBound(grammar);
  if (between) cursor.expectWord("and");
  const end: FrameBound = between ? readBound(grammar) : { kind: "current row" };
  if (cursor.isWord("exclude")) throw cursor.notServed("EXCLUDE in a frame");
  return { unit, start, end, span: cursor.since(first) };
}

function readBound(grammar: Grammar): FrameBound {
  const { cursor } = grammar;
  if (cursor.takeWords("current", "row")) return { kind: "current row" };
  const by = cursor.takeWords("unbounded") ? undefined : grammar.expression();
  const kind = cursor.isWord("preceding") ? "preceding" : "following";
  cursor.expectWord(kind);
  return by === undefined ? { kind: `unbounded ${kind}` } : { kind, by };
}

/** Parses `x -> …` or `(x, y) -> …`; returns `undefined` if no lambda begins at the cursor. */
export function readLambda(grammar: Grammar): Lambda | undefined {
  const { cursor } = grammar;
  const first = cursor.peek();
  if (!startsLambda(cursor)) return undefined;
  const name = (): Identifier => cursor.expectName("the name of a parameter");
  const inParentheses = cursor.takeSign("(");
  const parameters = inParentheses ? list(cursor, name) : [name()];
  if (inParentheses) cursor.expectSign(")");
  cursor.expectSign("->");
  const body = grammar.expression();
  return { kind: "lambda", parameters, body, span: cursor.since(first) };
}

function startsLambda(cursor: Cursor): boolean {
  if (!cursor.isSign("(")) return cursor.isSign("->", 1);
  // Looks ahead only to the first token that does not match. Otherwise nested parentheses would cause quadratic time.
  let ahead = 1;
  while (cursor.isSign(",", ahead + 1)) ahead += 2;
  return cursor.isSign(")", ahead + 1) && cursor.isSign("->", ahead + 2);
}

/** Parses an item of ORDER BY. */
export function readOrder(grammar: Grammar): Order {
  const { cursor } = grammar;
  const expression = aliasable(grammar);
  const descending = cursor.takeWords("desc") || cursor.takeWords("descending");
  if (!descending && !cursor.takeWords("asc")) cursor.takeWords("ascending");
  let nulls: Order["nulls"];
  if (cursor.takeWords("nulls")) {
    nulls = cursor.isWord("first") ? "first" : "last";
    cursor.expectWord(nulls);
  }
  if (cursor.isWord("collate")) throw cursor.notServed("COLLATE");
  const fill = cursor.isWords("with", "fill") ? readFill(grammar) : undefined;
  return { expression, descending, nulls, fill, span: cursor.since(expression) };
}

function readFill(grammar: Grammar): Fill {
  const { cursor } = grammar;
  const first = cursor.peek();
  cursor.takeWords("with", "fill");
  const from = cursor.takeWords("from") ? grammar.expression() : undefined;
  const to = cursor.takeWords("to") ? grammar.expression() : undefined;
  const step = cursor.takeWords("step") ? grammar.expression() : undefined;
  if (cursor.isWord("staleness")) throw cursor.notServed("STALENESS");
  return { from, to, step, span: cursor.since(first) };
}
