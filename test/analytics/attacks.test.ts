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

/** More than one workspace's queries that run at once, and that wait, on either store. */
const HEAVY_AT_ONCE = 12;
const HEAVY = `select count() as n from ${Array.from({ length: 6 }, (_, at) => `key_verifications_v1 as t${at}`).join(" cross join ")} where concat(t0.request_id, t5.request_id) != t3.key_id`;

let world: MarkedWorld;

beforeAll(async () => {
  world = await openMarkedWorld({ timeoutMs: 1_000 });
}, 180_000);
afterAll(() => world?.close());

describe.each(KINDS)("on %s", (kind) => {
  const ask = (query: string, rootKey = world.ours) => world.served.ask(kind, { rootKey, query });

  test.each(ATTACKS.filter(({ response }) => response !== "own rows"))(
    "analytics attack ($name) is rejected: $query",
    async (attack) => {
      const startedMs = performance.now();
      const { query, response } = attack;
      const reply = await ask(query);
      expect(reply).toMatchObject({ status: 400, kind: response });
      expect(reply.rowsJson === undefined && reply.detail.length).toBeLessThan(300);
      expect(performance.now() - startedMs).toBeLessThan(ANSWERED_MS_MAX);
    },
  );

  test.each(ATTACKS.filter(({ response }) => response === "own rows"))(
    "analytics attack ($name) reads only rows of its own workspace: $query",
    async ({ query }) => {
      const startedMs = performance.now();
      const reply = await ask(query);
      if (reply.rowsJson !== undefined) {
        // What the caller wrote may come back.
        expect(reply.rowsJson).not.toMatch(query.includes("theirs") ? /theirs_\d|"theirs"|987654321/ : FOREIGN_MARK);
      } else if (reply.status === 422) expect(LIMITS).toContain(reply.kind);
      else expect(reply).toMatchObject({ status: 400, kind: "invalid_analytics_query" });
      expect(performance.now() - startedMs).toBeLessThan(ANSWERED_MS_MAX);
    },
  );

  test("heavy analytics queries of one workspace stay within limits and leave slots to other workspaces", async () => {
    let running = HEAVY_AT_ONCE;
    const heavy = Array.from({ length: HEAVY_AT_ONCE }, async () => {
      const reply = await ask(HEAVY);
      running -= 1;
      return reply.rowsJson === undefined ? `${reply.status} ${reply.kind}` : reply.rowsJson;
    });
    // The first of them have their places by now, or get them before this one asks for its own.
    const other = await ask("select count() as n from key_verifications_v1", world.theirs);
    expect(other).toMatchObject({ status: 200, rowsJson: '[{"n":10}]' });
    expect(running).toBeGreaterThan(0);
    const ends = new Set(await Promise.all(heavy));
    // Those that found no place in time are told to try again.
    expect(["422 query_execution_timeout", "503 server_busy"]).toEqual(expect.arrayContaining([...ends]));
    expect(ends).toContain("422 query_execution_timeout");
    await expect
      .poll(() => ask("select count() as n from key_verifications_v1"))
      .toMatchObject({ rowsJson: '[{"n":150}]' });
  }, 60_000);

  test("another workspace can read its data after hostile analytics queries", async () => {
    for (const table of ["key_verifications_v1", "key_verifications_per_minute_v1", "key_verifications_per_month_v1"]) {
      const query = `select key_id, spent_credits % 987654321 as rest from ${table} where spent_credits > 0 limit 1`;
      expect(await ask(query, world.theirs)).toMatchObject({ rowsJson: '[{"key_id":"theirs","rest":0}]' });
      expect(await ask(`select count() > 0 as n from ${table}`)).toMatchObject({ rowsJson: '[{"n":1}]' });
    }
  });
});
