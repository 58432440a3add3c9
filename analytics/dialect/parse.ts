import { lex, type Token } from "./lex.ts";
import { Cursor } from "./parse/cursor.ts";
import type { DeferredRule, Grammar } from "./parse/grammar.ts";
import { readExpression } from "./parse/operators.ts";
import { readSelect } from "./parse/select.ts";
import { QueryProblem } from "./problem.ts";
import type { Query, SetOperation } from "./tree.ts";

export interface Parsed {
  readonly query: Query;
  /** Violations of rules that are checked only if the query can be parsed. If there are any, the tree must not be used. */
  readonly refused: readonly { readonly rule: DeferredRule; readonly problem: QueryProblem }[];
}

/**
 * Parses one statement in the supported subset of ClickHouse SQL. Rejects unsupported syntax with an error that names its position. Time is
 * linear in the text, and nesting depth is bounded.
 * @throws QueryProblem of kind `invalid_analytics_query`, or `invalid_analytics_query_type` for a statement other than SELECT.
 */
export function parse(text: string): Parsed {
  const tokens = lex(text);
  const cursor = new Cursor(tokens);
  const refused: Parsed["refused"][number][] = [];
  const grammar: Grammar = {
    cursor,
    expression: () => cursor.nested(() => readExpression(grammar)),
    query: () => cursor.nested(() => readQuery(grammar)),
    continueQuery: (first) => readSetOperators(grammar, first),
    refuse: (rule, problem) => refused.push({ rule, problem }),
  };
  refuseOtherStatements(cursor, tokens);
  const query = grammar.query();
  readEnd(cursor);
  return { query, refused };
}

function readQuery(grammar: Grammar): Query {
  return readSetOperators(grammar, readBranch(grammar));
}

function readBranch(grammar: Grammar): Query {
  const { cursor } = grammar;
  if (!cursor.takeSign("(")) return readSelect(grammar);
  const query = grammar.query();
  cursor.expectSign(")");
  return query;
}

/** UNION and EXCEPT have the same precedence and associate to the left. */
function readSetOperators(grammar: Grammar, first: Query): Query {
  const { cursor } = grammar;
  let left = first;
  for (;;) {
    const operator = readSetOperator(cursor);
    if (operator === undefined) return left;
    const right = readBranch(grammar);
    left = { kind: "set", operator, left, right, span: { start: left.span.start, end: right.span.end } };
  }
}

function readSetOperator(cursor: Cursor): SetOperation["operator"] | undefined {
  if (cursor.takeWords("union", "all")) return "union all";
  if (cursor.takeWords("union", "distinct")) return "union distinct";
  if (cursor.isWord("union")) throw cursor.problem("UNION needs ALL or DISTINCT after it");
  if (cursor.isWord("intersect")) throw cursor.notServed("INTERSECT");
  if (!cursor.takeWords("except")) return undefined;
  if (cursor.takeWords("distinct")) return "except distinct";
  cursor.takeWords("all");
  return "except";
}

function readEnd(cursor: Cursor): void {
  for (const word of ["settings", "format", "into"]) {
    if (cursor.isWord(word)) throw cursor.notServed(word === "into" ? "INTO OUTFILE" : word.toUpperCase());
  }
  const several = cursor.takeSign(";");
  while (cursor.takeSign(";"));
  if (cursor.peek().kind === "end") return;
  throw several ? cursor.problem(ONE_STATEMENT) : cursor.unexpected("the end of the query");
}

const ONE_STATEMENT = "only one statement can be run at a time";

/** First words of ClickHouse statements other than SELECT. */
const OTHER_STATEMENTS: ReadonlySet<string> = new Set(
  [
    "alter analyze attach audit backup begin call check commit create deallocate delete desc describe detach drop execute",
    "exchange exists explain grant insert kill load move optimize prepare rename replace restore revoke rollback set show",
    "start stop system transaction truncate undrop unset update use values watch",
  ].flatMap((words) => words.split(" ")),
);

/** Rejects statements other than SELECT by their first word. */
function refuseOtherStatements(cursor: Cursor, tokens: readonly Token[]): void {
  const { kind, text, span } = cursor.peek();
  if (kind === "end") throw cursor.problem("the query is empty");
  if (cursor.isWord("from")) throw cursor.problem("SELECT stands before FROM");
  if (kind !== "word" || !OTHER_STATEMENTS.has(text.toLowerCase())) return;
  const end = tokens.findIndex((token) => token.kind === "sign" && token.text === ";");
  const after = end < 0 ? undefined : tokens.slice(end).find((token) => token.text !== ";" && token.kind !== "end");
  if (after !== undefined) throw new QueryProblem("invalid_analytics_query", ONE_STATEMENT, after.span);
  throw new QueryProblem("invalid_analytics_query_type", "only SELECT can be run", span);
}
