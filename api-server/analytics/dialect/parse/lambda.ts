import type { Identifier, Lambda } from "../tree.ts";
import type { Cursor } from "./cursor.ts";
import { type Grammar, list } from "./grammar.ts";

/** Reads `x -> …` or `(x, y) -> …`, or returns undefined when no lambda stands here. */
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
  // It ends at the first token that does not fit, so that nested parentheses are not read again and again.
  let ahead = 1;
  while (cursor.isSign(",", ahead + 1)) ahead += 2;
  return cursor.isSign(")", ahead + 1) && cursor.isSign("->", ahead + 2);
}
