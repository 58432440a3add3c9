import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "../../api-server/analytics/dialect/parse.ts";
import { QueryProblem } from "../../api-server/analytics/dialect/problem.ts";
import type { Query } from "../../api-server/analytics/dialect/tree.ts";
import { createTestClickhouse, type TestClickhouse } from "../harness/clickhouse.ts";
import { CORPUS } from "./corpus/all.ts";
import { PARSED_QUERIES } from "./parsed-queries.ts";
import { printQuery } from "./print-query.ts";

/*
 * Our parser against ClickHouse's own. What ours has read is printed with parentheses around every operator; ClickHouse must find the same tree in
 * that as in the caller's text.
 */

let database: TestClickhouse;
let client: ClickHouseClient;

beforeAll(async () => {
  database = await createTestClickhouse();
  client = createClient({ url: database.url });
});
afterAll(async () => {
  await client?.close();
  await database?.drop();
});

async function engineTree(text: string): Promise<string> {
  const statement = text.replace(/[\s;]+$/, "");
  try {
    const tree = await client.query({ query: `EXPLAIN AST ${statement}`, format: "TabSeparatedRaw" });
    // Has what the tree's lines leave out, such as DESC, DISTINCT and the kinds of joins. Parentheses are the caller's.
    const formatted = await client.query({
      query: "SELECT formatQuerySingleLine({statement:String})",
      query_params: { statement },
      format: "TabSeparatedRaw",
    });
    // A type is text to the engine, blanks included.
    const text = (await formatted.text())
      .replace(/[()`]/g, "")
      .replaceAll("EXCEPT ALL", "EXCEPT")
      .replaceAll(" CROSS JOIN ", ", ");
    return `${await tree.text()}${text}`.replaceAll(", ", ",");
  } catch (error) {
    return `refused: ${error instanceof Error ? error.message : error}`;
  }
}

function readByUs(text: string): Query | undefined {
  try {
    const { query, refused } = parse(text);
    return refused.length === 0 ? query : undefined;
  } catch (error) {
    if (error instanceof QueryProblem) return undefined;
    throw error;
  }
}

const TEXTS = [...PARSED_QUERIES.map(([text]) => text), ...CORPUS.map(({ query }) => query)];

test("what we read of a query is what ClickHouse reads of it", async () => {
  const different: string[] = [];
  let compared = 0;
  for (const text of TEXTS) {
    const query = readByUs(text);
    if (query === undefined) continue;
    const printed = printQuery(query);
    const [ours, theirs] = [await engineTree(printed), await engineTree(text)];
    compared += 1;
    if (ours !== theirs) different.push(`${text}\n${printed}\n${theirs}\n${ours}`);
  }
  expect(different).toEqual([]);
  expect(compared).toBeGreaterThan(500);
}, 120_000);

/**
 * Cuts and swaps words of known queries. Most results are refused by both; those that we accept say whether the parser is ever more generous than
 * the engine, or reads another meaning.
 */
function mutants(seed: number, count: number): readonly string[] {
  let state = seed;
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pick = <T>(from: readonly T[]): T => from[next(from.length)] as T;
  const partsOf = (text: string): string[] => text.match(/'[^']*'|\w+|\s+|[^\w\s]/g) ?? [];
  return Array.from({ length: count }, () => {
    const parts = partsOf(pick(TEXTS));
    const other = partsOf(pick(TEXTS));
    const at = next(parts.length);
    const from = next(other.length);
    parts.splice(at, next(4), ...other.slice(from, from + next(6)));
    return parts.join("");
  });
}

test("nor do we read another meaning into queries whose words were mixed", async () => {
  const different: string[] = [];
  let accepted = 0;
  for (const text of mutants(20_261_122, 1_500)) {
    const query = readByUs(text);
    if (query === undefined) continue;
    accepted += 1;
    const printed = printQuery(query);
    const [ours, theirs] = [await engineTree(printed), await engineTree(text)];
    if (ours !== theirs) different.push(`${text}\n${printed}\n${theirs}\n${ours}`);
  }
  expect(different).toEqual([]);
  expect(accepted).toBeGreaterThan(100);
}, 120_000);
