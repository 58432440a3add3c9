import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { createPool } from "../store/pool.ts";
import { putSetting } from "../store/settings.ts";
import { findTimeline } from "../store/timeline.ts";
import { RESTORED, whyRebuild } from "./rebuild.ts";

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
])("the reason for a new projection: $name", async ({ state, known, reason }) => {
  expect(await whyRebuild(db, { ...STATE, ...state }, { ...KNOWN, ...known })).toBe(reason);
});

test("the timeline of a Postgres is the same on each connection", async () => {
  const timeline = await findTimeline(db);
  expect(timeline).toMatch(/^\d+\/[0-9A-F]{8}$/);
  const other = createPool(database.url);
  expect(await findTimeline(other)).toBe(timeline);
  await other.end();
});
