import { QueryProblem } from "../problem.ts";
import type { ArrayJoin, Expression, From, Identifier, Join, Query } from "../tree.ts";
import type { Cursor } from "./cursor.ts";
import { aliasable, type Grammar, list } from "./grammar.ts";
import { startsSelect } from "./operands.ts";
import { NO_BARE_ALIAS, NO_EXPRESSION } from "./reserved.ts";

/** Parses a FROM clause: a table or subquery, followed by joins from left to right. */
export function readFrom(grammar: Grammar): From {
  const { cursor } = grammar;
  let from = readSource(grammar);
  for (;;) {
    const type = startsArrayJoin(cursor) ? undefined : readJoinType(cursor);
    if (type === undefined) return from;
    const right = readSource(grammar);
    const condition = type === "cross" ? { on: undefined, using: [] } : readCondition(grammar);
    from = { kind: "join", type, left: from, right, ...condition, span: cursor.since(from) };
  }
}

const startsArrayJoin = (cursor: Cursor): boolean =>
  cursor.isWords("array", "join") ||
  ((cursor.isWord("left") || cursor.isWord("inner")) && cursor.isWord("array", 1) && cursor.isWord("join", 2));

/** Parses one ARRAY JOIN of one array after all joins. */
export function readArrayJoin(grammar: Grammar): ArrayJoin | undefined {
  const { cursor } = grammar;
  const first = cursor.peek();
  if (!startsArrayJoin(cursor)) return undefined;
  const left = cursor.takeWords("left");
  if (!left) cursor.takeWords("inner");
  cursor.takeWords("array", "join");
  const array = aliasable(grammar);
  if (array.kind !== "aliased") throw cursor.problem("ARRAY JOIN needs AS with a name for the element");
  if (cursor.isSign(",")) throw cursor.notServed("ARRAY JOIN of several arrays");
  const after = cursor.notServed("a join after ARRAY JOIN");
  if (startsArrayJoin(cursor) || readJoinType(cursor) !== undefined) throw after;
  return { left, array: array.expression, alias: array.alias, span: cursor.since(first) };
}

const REFUSED_JOINS = ["global", "any", "all", "asof", "semi", "anti", "natural", "paste", "array"];

/** Consumes a join keyword sequence or a comma; returns `undefined` if no join follows. */
function readJoinType(cursor: Cursor): Join["type"] | undefined {
  if (cursor.takeSign(",")) return "cross";
  if (cursor.takeWords("cross", "join")) return "cross";
  refuseJoin(cursor);
  if (cursor.takeWords("join")) return "inner";
  const type = (["inner", "left", "right", "full"] as const).find((word) => cursor.takeWords(word));
  if (type === undefined) return undefined;
  if (type !== "inner") cursor.takeWords("outer");
  refuseJoin(cursor);
  cursor.expectWord("join");
  return type;
}

function refuseJoin(cursor: Cursor): void {
  const word = REFUSED_JOINS.find((refused) => cursor.isWord(refused));
  if (word !== undefined) throw cursor.notServed(`${word.toUpperCase()} JOIN`);
}

function readCondition(grammar: Grammar): { on: Expression | undefined; using: readonly Identifier[] } {
  const { cursor } = grammar;
  if (cursor.takeWords("on")) return { on: aliasable(grammar), using: [] };
  if (!cursor.takeWords("using")) throw cursor.unexpected("ON or USING");
  const column = (): Identifier => cursor.expectName("the name of a column");
  if (!cursor.takeSign("(")) {
    const using = [column()];
    if (cursor.isSign(",")) throw cursor.problem("several columns after USING need parentheses");
    return { on: undefined, using };
  }
  const using = list(cursor, column);
  cursor.expectSign(")");
  return { on: undefined, using };
}

function readSource(grammar: Grammar): From {
  const { cursor } = grammar;
  const first = cursor.peek();
  if (first.kind === "sign" && first.text === "(") {
    const query = cursor.nested(() => readQueryInParentheses(grammar));
    return { kind: "derived", query, alias: readAlias(cursor), span: cursor.since(first) };
  }
  if (first.kind === "sign" && first.text === "{") throw cursor.notServed("a query parameter");
  const name = readTableName(grammar);
  return { kind: "table", name, alias: readAlias(cursor), span: cursor.since(first) };
}

function readQueryInParentheses(grammar: Grammar): Query {
  const { cursor } = grammar;
  cursor.expectSign("(");
  if (!startsSelect(cursor) && !cursor.isSign("(")) throw cursor.unexpected("SELECT");
  const query = grammar.query();
  cursor.expectSign(")");
  return query;
}

/**
 * Parses a table name. A database prefix, or the arguments of a table function, are parsed too, but rejected after the complete query has
 * been parsed.
 */
function readTableName(grammar: Grammar): Identifier {
  const { cursor } = grammar;
  if (cursor.peek().kind === "word" && NO_EXPRESSION.has(cursor.peek().text.toLowerCase()))
    throw cursor.unexpected("a table");
  const name = cursor.expectName("a table");
  if (cursor.isSign(".")) {
    while (cursor.takeSign(".")) cursor.expectName("a table");
    const detail = "a table's name stands alone, without a database before it";
    grammar.refuse("tables", new QueryProblem("invalid_analytics_table", detail, cursor.since(name)));
  }
  if (cursor.takeSign("(")) {
    const argument = (): unknown => (startsSelect(cursor) ? grammar.query() : aliasable(grammar));
    if (!cursor.isSign(")")) cursor.nested(() => list(cursor, argument));
    cursor.expectSign(")");
    const detail = "functions that return tables are not offered";
    grammar.refuse("tables", new QueryProblem("invalid_analytics_function", detail, cursor.since(name)));
  }
  return name;
}

function readAlias(cursor: Cursor): Identifier | undefined {
  const alias = takeAlias(cursor);
  if (cursor.isWord("final")) throw cursor.notServed("FINAL");
  if (cursor.isWord("sample")) throw cursor.notServed("SAMPLE");
  if (alias !== undefined && cursor.isSign("("))
    throw cursor.problem("names for the columns of a table are not served");
  return alias;
}

/** Consumes `AS name`, or a bare name that is not a keyword of the query. */
export function takeAlias(cursor: Cursor): Identifier | undefined {
  if (cursor.takeWords("as")) return cursor.expectName("the alias");
  const { kind, text } = cursor.peek();
  const isAlias = kind === "quotedName" || (kind === "word" && !NO_BARE_ALIAS.has(text.toLowerCase()));
  return isAlias ? cursor.expectName("the alias") : undefined;
}
