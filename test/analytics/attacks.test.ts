import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ATTACKS } from "./attacks.ts";
import { FOREIGN_MARK, type MarkedWorld, openMarkedWorld } from "./marked-world.ts";
import { KINDS } from "./served.ts";

/*
 * The attacks through the API on both stores, by a root key that may read one API of its workspace.
 */

/** The time limit of a query, and what it may wait for a place, twice over on a slow machine. */
const ANSWERED_MS_MAX = 20_000;
/** What a query may be answered with that is no refusal of its text: limits of the store. */
const LIMITS = ["query_execution_timeout", "query_memory_limit_exceeded", "query_rows_limit_exceeded"];

let world: MarkedWorld;

beforeAll(async () => {
  world = await openMarkedWorld();
}, 180_000);
afterAll(() => world?.close());

describe.each(KINDS)("on %s", (kind) => {
  const ask = (query: string, rootKey = world.ours) => world.served.ask(kind, { rootKey, query });

  test.each(ATTACKS.filter(({ answer }) => answer !== "own rows"))("refused, $name: $query", async (attack) => {
    const startedMs = performance.now();
    const { query, answer } = attack;
    const reply = await ask(query);
    expect(reply).toMatchObject({ status: 400, kind: answer });
    expect(reply.rowsJson === undefined && reply.detail.length).toBeLessThan(300);
    expect(performance.now() - startedMs).toBeLessThan(ANSWERED_MS_MAX);
  });

  test.each(ATTACKS.filter(({ answer }) => answer === "own rows"))("own rows, $name: $query", async ({ query }) => {
    const startedMs = performance.now();
    const reply = await ask(query);
    if (reply.rowsJson !== undefined) {
      // What the caller wrote may come back.
      expect(reply.rowsJson).not.toMatch(query.includes("theirs") ? /theirs_\d|"theirs"|987654321/ : FOREIGN_MARK);
    } else if (reply.status === 422) expect(LIMITS).toContain(reply.kind);
    else expect(reply).toMatchObject({ status: 400, kind: "invalid_analytics_query" });
    expect(performance.now() - startedMs).toBeLessThan(ANSWERED_MS_MAX);
  });

  test("the other workspace sees the marks", async () => {
    for (const table of ["key_verifications_v1", "key_verifications_per_minute_v1", "key_verifications_per_month_v1"]) {
      const query = `select key_id, spent_credits % 987654321 as rest from ${table} where spent_credits > 0 limit 1`;
      expect(await ask(query, world.theirs)).toMatchObject({ rowsJson: '[{"key_id":"theirs","rest":0}]' });
      expect(await ask(`select count() > 0 as n from ${table}`)).toMatchObject({ rowsJson: '[{"n":1}]' });
    }
  });
});
