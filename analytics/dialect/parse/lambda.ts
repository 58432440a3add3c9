import type { Identifier, Lambda } from "../tree.ts";
import type { Cursor } from "./cursor.ts";
import { type Grammar, list } from "./grammar.ts";

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
  // Lookahead ends at the first token that does not match, so that nested parentheses do not cause quadratic time.
  let ahead = 1;
  while (cursor.isSign(",", ahead + 1)) ahead += 2;
  return cursor.isSign(")", ahead + 1) && cursor.isSign("->", ahead + 2);
}
