import type { Fill, Order } from "../tree.ts";
import { aliasable, type Grammar } from "./grammar.ts";

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
