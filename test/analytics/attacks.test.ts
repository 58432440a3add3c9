import { afterAll, beforeAll, expect, test } from "vitest";
import { explainProblem, QueryProblem } from "../../api-server/analytics/dialect/problem.ts";
import { ATTACKS } from "./attacks.ts";
import { checkMarked, FOREIGN_MARK, type MarkedStore, openMarkedStore } from "./marked-store.ts";

let store: MarkedStore;

beforeAll(async () => {
  store = await openMarkedStore();
});
afterAll(async () => {
  await store?.close();
});

test.each(ATTACKS.filter(({ answer }) => answer !== "own rows"))("refused, $name: $query", ({ query, answer }) => {
  const startedMs = performance.now();
  let kind = "none";
  try {
    checkMarked(query);
  } catch (error) {
    if (!(error instanceof QueryProblem)) throw error;
    kind = error.kind;
    expect(explainProblem(error, query).length).toBeLessThan(300);
  }
  expect(kind).toBe(answer);
  expect(performance.now() - startedMs).toBeLessThan(1_000);
});

test.each(ATTACKS.filter(({ answer }) => answer === "own rows"))("own rows, $name: $query", async ({ query }) => {
  const answer = await store.ask(query);
  // What the caller wrote may come back.
  const written = query.includes("theirs") ? /_theirs_|"theirs"|987654321/ : FOREIGN_MARK;
  if ("rows" in answer) expect(answer.rows).not.toMatch(written);
});

test("the other workspace sees the marks", async () => {
  for (const table of ["key_verifications_v1", "key_verifications_per_minute_v1", "key_verifications_per_month_v1"]) {
    expect(await store.ask(`select * from ${table}`, "theirs")).toMatchObject({
      rows: expect.stringMatching(/"theirs".*987654321/s),
    });
    expect(await store.ask(`select * from ${table}`)).toMatchObject({ rows: expect.stringContaining('"ours"') });
  }
});
