import { type ClickHouseClient, ClickHouseError, createClient } from "@clickhouse/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "../../analytics/dialect/parse.ts";
import { QueryProblem } from "../../analytics/dialect/problem.ts";
import type { Query } from "../../analytics/dialect/tree.ts";
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

/** How many statements are put into one question: most of the time goes into asking. */
const AT_ONCE = 20;

/** What the engine reads of each text: its tree, and its own spelling. A text that it refuses has the refusal instead. */
async function engineReads(texts: readonly string[]): Promise<readonly string[]> {
  const read: string[] = [];
  for (let from = 0; from < texts.length; from += AT_ONCE) {
    const chunk = texts.slice(from, from + AT_ONCE);
    // The engine refuses a question as a whole, so that the texts of a refused one are asked for by themselves.
    read.push(...((await engineChunk(chunk)) ?? (await Promise.all(chunk.map(engineRead)))));
  }
  return read;
}

async function engineRead(text: string): Promise<string> {
  const said: { refusal?: string } = {};
  return (await engineChunk([text], said))?.[0] ?? `refused: ${said.refusal}`;
}

async function engineChunk(
  texts: readonly string[],
  said: { refusal?: string } = {},
): Promise<readonly string[] | undefined> {
  const statements = texts.map((text) => text.replace(/[\s;]+$/, ""));
  // The spelling has what the tree's lines leave out, such as DESC, DISTINCT and the kinds of joins.
  const asked = statements.map(
    (statement, i) =>
      `SELECT ${i} AS place, arrayStringConcat(groupArray(explain), '\\n') AS tree,
              formatQuerySingleLine({statement${i}:String}) AS spelling
         FROM (EXPLAIN AST ${statement}\n)`,
  );
  try {
    const response = await client.query({
      query: asked.join("\nUNION ALL\n"),
      query_params: Object.fromEntries(statements.map((statement, i) => [`statement${i}`, statement])),
      format: "JSONEachRow",
    });
    const rows = await response.json<{ place: number; tree: string; spelling: string }>();
    const inOrder = rows.sort((a, b) => a.place - b.place);
    expect(inOrder.map(({ place }) => place)).toEqual([...texts.keys()]);
    return inOrder.map(({ tree, spelling }) => `${tree}\n${withoutTaste(spelling)}`.replaceAll(", ", ","));
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error;
    said.refusal = error.message;
    return undefined;
  }
}

/** Parentheses are the caller's. A type is text to the engine, blanks included. */
const withoutTaste = (spelling: string): string =>
  spelling.replace(/[()`]/g, "").replaceAll("EXCEPT ALL", "EXCEPT").replaceAll(" CROSS JOIN ", ", ");

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

/** Compares the texts that we accept. */
async function compare(texts: readonly string[]): Promise<{ compared: number; different: readonly string[] }> {
  const accepted = texts.flatMap((text) => {
    const query = readByUs(text);
    return query === undefined ? [] : [{ text, printed: printQuery(query) }];
  });
  const theirs = await engineReads(accepted.map(({ text }) => text));
  const ours = await engineReads(accepted.map(({ printed }) => printed));
  const different = accepted.flatMap(({ text, printed }, i) =>
    ours[i] === theirs[i] ? [] : [`${text}\n${printed}\n${theirs[i]}\n${ours[i]}`],
  );
  return { compared: accepted.length, different };
}

test("analytics parser interprets accepted queries as ClickHouse does", async () => {
  const { compared, different } = await compare(TEXTS);
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

test("analytics parser interprets a query with shuffled words as ClickHouse does if both accept it", async () => {
  const { compared, different } = await compare(mutants(20_261_122, 1_500));
  expect(different).toEqual([]);
  expect(compared).toBeGreaterThan(100);
}, 120_000);
