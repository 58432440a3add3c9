import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createMemoryEdge } from "../../edge/open.ts";
import type { RecordWriter } from "../../edge/projection/contract.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { nextProjectionVersion } from "../db/outbox.ts";
import { putSetting } from "../db/settings.ts";
import { findTimeline } from "../db/timeline.ts";
import { beginProjection, RESTORED, whyRebuild } from "./rebuild.ts";

let database: TestDatabase;
let db: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  await putSetting(db, "projection", { projectionId: "prj", runId: "run", timeline: "sys/1" });
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

const STATE = { projectionId: "prj", complete: true, head: 50, version: 9, asOfMs: 1, runId: "run" };
const KNOWN = { lastHead: 50, lastVersion: 10, timeline: "sys/1" };

test.each([
  { name: "no reason, when the store holds what it should", reason: undefined },
  { name: "an empty store", state: { projectionId: undefined, version: 0 }, reason: "the store holds no projection" },
  { name: "another projection", state: { projectionId: "x" }, reason: "the store holds another projection" },
  { name: "no reason, when it is incomplete: it is continued", state: { complete: false }, reason: undefined },
  { name: "a restarted store", state: { runId: "x" }, reason: "the store was restarted" },
  { name: "fewer entries than before", state: { head: 49 }, reason: "the store went back in time" },
  { name: "a version that Postgres has not drawn", state: { version: 11 }, reason: RESTORED },
  // Another history had drawn it before: in this one it has only just been drawn.
  { name: "a version that Postgres draws only now", state: { version: 10 }, reason: RESTORED },
  { name: "another timeline of Postgres", known: { timeline: "sys/2" }, reason: RESTORED },
  { name: "no reason, when Postgres does not report its timeline", known: { timeline: undefined }, reason: undefined },
])("relay decides whether to start a new projection: $name", async ({ state, known, reason }) => {
  expect(await whyRebuild(db, { ...STATE, ...state }, { ...KNOWN, ...known })).toBe(reason);
});

describe("a relay that crashes while starting a projection after a restore", () => {
  const log = pino({ level: "silent" });
  const writer: RecordWriter = createMemoryEdge().writer;
  const newer = { ...STATE, version: 5_000 };
  /** Fails instead of sending the statement with this number. Returns whether it came to that. */
  const beginUntil = async (failAt: number, projectionId: string): Promise<boolean> => {
    let count = 0;
    const crashing = {
      query: (...args: unknown[]) => {
        if (++count === failAt) throw new Error("crashed");
        return (db.query as (...args: unknown[]) => unknown)(...args);
      },
    } as unknown as Pool;
    const how = { projectionId, reason: RESTORED, state: newer, timeline: "sys/1", log };
    return await beginProjection({ db: crashing, writer }, how).then(
      () => false,
      (error: Error) => error.message === "crashed",
    );
  };

  test("relay starts a new projection after a crash at any step", async () => {
    let statements = 0;
    for (let failAt = 1; ; failAt++) {
      // As restored: the setting and the sequence of before, while the store goes on with what it has.
      await putSetting(db, "projection", { projectionId: "prj", runId: "run", timeline: "sys/1" });
      await db.query("select setval('projection_version', 100)");
      if (!(await beginUntil(failAt, `prj_${failAt}`))) break;
      statements += 1;
      const lastVersion = await nextProjectionVersion(db);
      expect(
        await whyRebuild(db, newer, { lastHead: 0, lastVersion, timeline: "sys/1" }),
        `at ${failAt}`,
      ).toBeDefined();
    }
    expect(statements).toBeGreaterThan(4);
  });

  test("relay raises policy and credit versions above those lost in a restore", async () => {
    await db.query("insert into workspaces (id, name, created_at) values ('ws_1', 'one', 1)");
    await db.query(
      "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_1', 'ws_1', 'ks_1', 'one', 1)",
    );
    const policies = [
      ["pol_1", 1],
      ["pol_2", 5e12],
    ] as const;
    for (const [id, version] of policies) {
      const text = `insert into policies (id, workspace_id, api_id, name, uid, generation, version, policy, created_at)
                    values ($1, 'ws_1', 'api_1', $1, 'u', 1, $2, '{}', 1)`;
      await db.query(text, [id, version]);
    }
    await beginUntil(0, "prj_next");
    const { rows } = await db.query("select version from policies order by id");
    const [first, second] = rows.map(({ version }) => Number(version));
    expect(Math.abs((first ?? 0) - Date.now() / 1000)).toBeLessThan(600);
    expect(second).toBe(5e12 + 1);
  });
});

test("Postgres timeline is the same when read over different connections", async () => {
  const timeline = await findTimeline(db);
  expect(timeline).toMatch(/^\d+\/[0-9A-F]{8}$/);
  const other = createPool(database.url);
  expect(await findTimeline(other)).toBe(timeline);
  await other.end();
});
