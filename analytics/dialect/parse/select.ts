import { QueryProblem } from "../problem.ts";
import type { CommonTable, Expression, From, LimitBy, NamedWindow, Order, Select } from "../tree.ts";
import { readOrder, readWindow } from "./calls.ts";
import { readArrayJoin, readFrom, takeAlias } from "./from.ts";
import { aliasable, type Grammar, list } from "./grammar.ts";
import { startsSelect } from "./operands.ts";

/** Parses one SELECT with its clauses in ClickHouse's order. */
export function readSelect(grammar: Grammar): Select {
  const { cursor } = grammar;
  const first = cursor.peek();
  const common = cursor.takeWords("with") ? readCommon(grammar) : [];
  if (cursor.isWord("insert")) {
    throw new QueryProblem("invalid_analytics_query_type", "only SELECT can be run", cursor.peek().span);
  }
  cursor.expectWord("select");
  const distinct = cursor.takeWords("distinct");
  if (distinct && cursor.isWord("on")) throw cursor.notServed("DISTINCT ON");
  if (!distinct) cursor.takeWords("all");
  if (cursor.isWord("top") && cursor.peek(1).kind === "number") throw cursor.notServed("TOP");
  const columns = list(cursor, () => readColumn(grammar));
  const from = readFromClause(grammar);
  const arrayJoin = readArrayJoin(grammar);
  if (cursor.isWord("prewhere")) throw cursor.notServed("PREWHERE");
  const where = cursor.takeWords("where") ? aliasable(grammar) : undefined;
  const groupBy = cursor.takeWords("group", "by") ? readGroupBy(grammar) : [];
  const having = cursor.takeWords("having") ? aliasable(grammar) : undefined;
  const windows = cursor.takeWords("window") ? list(cursor, () => readNamedWindow(grammar)) : [];
  if (cursor.isWord("qualify")) throw cursor.notServed("QUALIFY");
  const orderBy = cursor.takeWords("order", "by") ? readOrderBy(grammar) : [];
  const { limitBy, limit, offset } = readLimits(grammar);
  const span = cursor.since(first);
  const clauses = { arrayJoin, where, groupBy, having, windows, orderBy, limitBy, limit, offset };
  return { kind: "select", with: common, distinct, columns, from, ...clauses, span };
}

/** Parses `name AS (SELECT …)` or `expression AS name`. */
function readCommon(grammar: Grammar): readonly CommonTable[] {
  const { cursor } = grammar;
  if (cursor.isWord("recursive") && !cursor.isWord("as", 1)) throw cursor.notServed("WITH RECURSIVE");
  return list(cursor, () => {
    const first = cursor.peek();
    if (cursor.isWord("as", 1) && cursor.isSign("(", 2)) {
      const name = cursor.expectName("a name");
      cursor.next();
      cursor.next();
      if (!startsSelect(cursor) && !cursor.isSign("(")) throw cursor.unexpected("SELECT");
      const is = cursor.nested(() => grammar.query());
      cursor.expectSign(")");
      return { name, is, span: cursor.since(first) };
    }
    const expression = grammar.expression();
    cursor.expectWord("as");
    if (cursor.isWord("materialized")) throw cursor.notServed("MATERIALIZED");
    const name = cursor.expectName("a name");
    return { name, is: { kind: "expression", expression }, span: cursor.since(first) };
  });
}

/** Parses an item of SELECT: `*`, `table.*`, or an expression whose alias may omit AS. */
function readColumn(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.peek();
  const qualified = cursor.isSign(".", 1) && cursor.isSign("*", 2);
  if (cursor.isSign("*") || qualified) {
    const of = qualified ? cursor.expectName("a table") : undefined;
    if (qualified) cursor.next();
    cursor.next();
    const modifier = ["except", "replace", "apply"].find((word) => cursor.isWord(word) && !cursor.isWord("select", 1));
    if (modifier !== undefined) throw cursor.notServed(`\`*\` with ${modifier.toUpperCase()}`);
    return { kind: "star", of, span: cursor.since(first) };
  }
  const expression = grammar.expression();
  const alias = takeAlias(cursor);
  return alias === undefined ? expression : { kind: "aliased", expression, alias, span: cursor.since(first) };
}

function readFromClause(grammar: Grammar): From {
  const { cursor } = grammar;
  const { span } = cursor.peek();
  if (cursor.takeWords("from")) return readFrom(grammar);
  grammar.refuse("from", new QueryProblem("invalid_analytics_query", "each SELECT needs a FROM", span));
  return { kind: "table", name: { text: "", quoted: true, span }, alias: undefined, span };
}

function readGroupBy(grammar: Grammar): readonly Expression[] {
  const { cursor } = grammar;
  if (cursor.isWord("all") && !cursor.isSign(",", 1)) throw cursor.notServed("GROUP BY ALL");
  if (cursor.isWords("grouping", "sets")) throw cursor.notServed("GROUPING SETS");
  const modifier = ["rollup", "cube"].find((word) => cursor.isWord(word) && cursor.isSign("(", 1));
  if (modifier !== undefined) throw cursor.notServed(modifier.toUpperCase());
  const groupBy = list(cursor, () => aliasable(grammar));
  if (cursor.isWord("with")) throw cursor.notServed("GROUP BY with ROLLUP, CUBE or TOTALS");
  return groupBy;
}

function readNamedWindow(grammar: Grammar): NamedWindow {
  const { cursor } = grammar;
  const name = cursor.expectName("the name of a window");
  cursor.expectWord("as");
  const window = readWindow(grammar);
  return { name, window, span: cursor.since(name) };
}

function readOrderBy(grammar: Grammar): readonly Order[] {
  const { cursor } = grammar;
  if (cursor.isWord("all") && !cursor.isSign(",", 1)) throw cursor.notServed("ORDER BY ALL");
  const orderBy = list(cursor, () => readOrder(grammar));
  if (cursor.isWord("interpolate")) throw cursor.notServed("INTERPOLATE");
  return orderBy;
}

/** Parses LIMIT … BY and the LIMIT of all rows; each is optional. */
function readLimits(grammar: Grammar): Pick<Select, "limitBy" | "limit" | "offset"> {
  const { cursor } = grammar;
  const first = cursor.peek();
  const rows = readLimit(grammar);
  const { limit, offset } = rows;
  let limitBy: LimitBy | undefined;
  if (limit !== undefined && cursor.takeWords("by")) {
    if (cursor.isWord("all") && !cursor.isSign(",", 1)) throw cursor.notServed("LIMIT BY ALL");
    const by = list(cursor, () => aliasable(grammar));
    limitBy = { limit, offset, by, span: cursor.since(first) };
  }
  if (cursor.isWord("with")) throw cursor.notServed("WITH TIES");
  if (cursor.isWord("fetch") || cursor.isWord("row") || cursor.isWord("rows")) throw cursor.notServed("FETCH");
  if (limitBy === undefined) return { limitBy, ...rows };
  const all = cursor.isWord("limit") ? readLimit(grammar) : { limit: undefined, offset: undefined };
  if (cursor.isWord("with")) throw cursor.notServed("WITH TIES");
  return { limitBy, ...all };
}

/** Parses `LIMIT n`, `LIMIT n OFFSET m`, `LIMIT m, n` or `OFFSET m`. */
function readLimit(grammar: Grammar): Pick<Select, "limit" | "offset"> {
  const { cursor } = grammar;
  let limit: Expression | undefined;
  let offset: Expression | undefined;
  if (cursor.takeWords("limit")) {
    limit = readCount(grammar, "LIMIT");
    if (cursor.takeSign(",")) {
      offset = limit;
      limit = readCount(grammar, "LIMIT");
    }
  }
  if (offset === undefined && cursor.takeWords("offset")) offset = readCount(grammar, "OFFSET");
  return { limit, offset };
}

/** Accepts integers only; ClickHouse also accepts expressions, negative counts and fractions. */
function readCount({ cursor }: Grammar, clause: string): Expression {
  const { kind, text, span } = cursor.peek();
  const isCount = kind === "number" && /^[0-9]+$/.test(text) && BigInt(text) <= INT64_MAX;
  if (!isCount) throw cursor.unexpected(`a whole number after ${clause}`);
  cursor.next();
  return { kind: "number", text, span };
}

const INT64_MAX = 2n ** 63n - 1n;
