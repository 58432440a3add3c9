import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PostgresAnalytics } from "../../analytics/postgres/store.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { createPool } from "../../postgres/pool.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { DEFAULT_RETENTION_DAYS, Retention, type RetentionDays } from "./retention.ts";
import type { RunFairly } from "./workspace-turns.ts";

const NOW_MS = Date.UTC(2042, 5, 15);
const DAY_MS = 86_400_000;
const OLD_MS = NOW_MS - 31 * DAY_MS;
const RECENT_MS = NOW_MS - 29 * DAY_MS;

let database: TestDatabase;
let db: Pool;
beforeEach(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 4 });
  for (const ws of ["ws_b", "ws_a"])
    await db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [ws]);
});
afterEach(async () => {
  await db.end();
  await database.drop();
});

/** As in the api-server: a failure belongs to its turn. */
const failures: unknown[] = [];
const runFairly: RunFairly = async (workspaceIds, work) => {
  let isMore = false;
  for (const id of workspaceIds) {
    isMore = (await work(id).catch((error: unknown) => void failures.push(error))) || isMore;
  }
  return isMore;
};

/** Runs until nothing is left to remove. Returns the metrics. */
async function run(days: RetentionDays = DEFAULT_RETENTION_DAYS): Promise<string> {
  const metrics = new Registry();
  const retention = new Retention({ db, nowMs: () => NOW_MS, days, runFairly, metrics });
  for (let round = 0; await retention.round(); round++) {
    expect(round).toBeLessThan(50);
    // Deletes the marks of the removed rows, because no relay runs here.
    await db.query("delete from outbox");
  }
  return metrics.metrics();
}

const ids = async (table: string): Promise<string> => {
  const { rows } = await db.query<{ id: string }>(`select id from ${table} order by id`);
  return rows.map(({ id }) => id).join(" ");
};

const addApi = (id: string, ws: string, deletedAt: number | null) =>
  db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at, deleted_at) values ($1, $2, 'ks_' || $1, 'x', 1, $3)",
    [id, ws, deletedAt],
  );
const addIdentity = (id: string, ws: string, deletedAt: number | null) =>
  db.query(
    "insert into identities (id, workspace_id, external_id, created_at, deleted_at) values ($1, $2, $1, 1, $3)",
    [id, ws, deletedAt],
  );
const addKey = (id: string, ws: string, given: { apiId: string; identityId?: string; deletedAt?: number }) =>
  db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, identity_id, created_at, deleted_at)
     values ($1, $2, $3, md5($1), 's', $4, 1, $5)`,
    [id, ws, given.apiId, given.identityId ?? null, given.deletedAt ?? null],
  );

test("deleted rows are removed after the retention period in every workspace", async () => {
  for (const ws of ["ws_a", "ws_b"]) {
    await addApi(`api_live_${ws}`, ws, null);
    await addKey(`key_live_${ws}`, ws, { apiId: `api_live_${ws}` });
    await addKey(`key_old_${ws}`, ws, { apiId: `api_live_${ws}`, deletedAt: OLD_MS });
    await addKey(`key_recent_${ws}`, ws, { apiId: `api_live_${ws}`, deletedAt: RECENT_MS });
    await db.query("insert into key_credits (key_id, workspace_id, granted) values ($1, $2, 5)", [`key_old_${ws}`, ws]);
  }
  const metrics = await run();
  expect(await ids("keys")).toBe("key_live_ws_a key_live_ws_b key_recent_ws_a key_recent_ws_b");
  expect((await db.query("select from key_credits")).rowCount).toBe(0);
  expect(metrics).toContain('postern_retention_removed_total{kind="keys"} 2');
  expect(metrics).toContain(`postern_retention_finished_timestamp_seconds ${NOW_MS / 1000}`);
});

test("referenced deleted row is kept until its last reference is removed", async () => {
  await addApi("api_named", "ws_a", OLD_MS);
  await addApi("api_free", "ws_a", OLD_MS);
  await addApi("api_live", "ws_a", null);
  await addIdentity("id_named", "ws_a", OLD_MS);
  await addIdentity("id_of_deleted", "ws_a", OLD_MS);
  await addIdentity("id_free", "ws_a", OLD_MS);
  await addKey("key_1", "ws_a", { apiId: "api_named", identityId: "id_named" });
  await addKey("key_2", "ws_a", { apiId: "api_live", identityId: "id_of_deleted", deletedAt: RECENT_MS });
  for (const id of ["rlns_named", "rlns_free", "rlns_of_override"]) {
    await db.query(
      "insert into ratelimit_namespaces (id, workspace_id, name, created_at, deleted_at) values ($1, 'ws_a', $1, 1, $2)",
      [id, OLD_MS],
    );
  }
  await db.query(
    `insert into ratelimit_overrides (id, workspace_id, namespace_id, identifier, max_count, duration_ms, created_at, deleted_at)
     values ('rlor_1', 'ws_a', 'rlns_of_override', 'x', 1, 1000, 1, $1)`,
    [RECENT_MS],
  );
  await db.query(
    `insert into policies (id, workspace_id, api_id, name, uid, generation, policy, created_at)
     values ('pol_1', 'ws_a', 'api_live', 'x', 'u', 1, $1, 1)`,
    [JSON.stringify({ rules: [{ ratelimits: [{ scope: { kind: "namespace", namespaceId: "rlns_named" } }] }] })],
  );
  await run();
  expect(await ids("apis")).toBe("api_live api_named");
  expect(await ids("identities")).toBe("id_named id_of_deleted");
  expect(await ids("ratelimit_namespaces")).toBe("rlns_named rlns_of_override");
  // Without references they are removed too.
  await db.query("update keys set deleted_at = $1", [OLD_MS]);
  await db.query("update policies set deleted_at = $1", [OLD_MS]);
  await db.query("update ratelimit_overrides set deleted_at = $1", [OLD_MS]);
  await run();
  for (const table of ["keys", "identities", "ratelimit_namespaces", "policies"]) expect(await ids(table)).toBe("");
  expect(await ids("apis")).toBe("api_live");
});

test("audit log retention deletes in batches, oldest first, and skips locked rows", async () => {
  const add = (ws: string, count: number, ms: number) =>
    db.query(
      `insert into audit_log (id, workspace_id, time, event, description, actor, targets)
       select $1 || md5(n::text || $3::text), $1, $3::bigint + n, 'e', 'd', '{}', '[]' from generate_series(1, $2::int) n`,
      [ws, count, ms],
    );
  await add("ws_a", 1_300, NOW_MS - 91 * DAY_MS);
  await add("ws_b", 10, NOW_MS - 91 * DAY_MS);
  await add("ws_b", 10, NOW_MS - 89 * DAY_MS);
  const holder = await db.connect();
  await holder.query("begin");
  await holder.query("select from audit_log where workspace_id = 'ws_a' order by time limit 1 for update");
  expect(await run()).toContain('postern_retention_removed_total{kind="audit"} 1309');
  await holder.query("rollback");
  holder.release();
  const left = () => db.query("select workspace_id as ws from audit_log order by time");
  expect((await left()).rows.map(({ ws }) => ws).join(" ")).toBe(`ws_a ${Array(10).fill("ws_b").join(" ")}`);
  await run();
  expect((await left()).rowCount).toBe(10);
});

test("retention of 0 days removes nothing", async () => {
  await addApi("api_1", "ws_a", 1);
  await db.query(
    "insert into audit_log (id, workspace_id, time, event, description, actor, targets) values ('a', 'ws_a', 1, 'e', 'd', '{}', '[]')",
  );
  await run({ audit: 0, deleted: 0 });
  expect([await ids("apis"), await ids("audit_log")]).toEqual(["api_1", "a"]);
});

describe("usage of a workspace with a shorter retention", () => {
  const HOUR_MS = 3_600_000;
  const eventAt = (timeMs: number) => anEvent({ timeMs });

  /** One verification at each of these moments, stored when it happened. */
  async function use(workspaceId: string, times: readonly number[]): Promise<void> {
    for (const timeMs of times) {
      const analytics = new PostgresAnalytics({
        db,
        nowMs: () => timeMs,
        log: pino({ level: "silent" }),
        metrics: new Registry(),
      });
      await analytics.maintain(timeMs);
      const line = JSON.stringify({ ...eventAt(timeMs), workspaceId });
      expect(await analytics.ingest(new EventLines(workspaceId, line), timeMs)).toMatchObject({ stored: 1 });
      while (await analytics.rollUp());
    }
  }
  const hours = async (table: string, ws: string): Promise<number[]> => {
    const text = `select extract(epoch from time)::bigint * 1000 as ms from ${table} where workspace_id = $1 order by 1`;
    return (await db.query<{ ms: number }>(text, [ws])).rows.map(({ ms }) => (NOW_MS - ms) / HOUR_MS);
  };

  test("shorter usage retention of one workspace deletes only that workspace's expired events and buckets", async () => {
    await db.query(
      "insert into analytics_settings (workspace_id, verifications_days) values ('ws_a', 3), ('ws_b', 60)",
    );
    // 3 days ago to the millisecond, within the hour before, in the hour before that, and long ago.
    const at = [3 * 24, 3 * 24 + 0.5, 3 * 24 + 1.5, 20 * 24].map((hour) => NOW_MS - hour * HOUR_MS);
    for (const ws of ["ws_a", "ws_b"]) await use(ws, at.toReversed());
    const metrics = await run();
    const raw = async (ws: string) =>
      (
        await db.query<{ time: number }>("select time from verification_events where workspace_id = $1 order by 1", [
          ws,
        ])
      ).rows;
    expect(await raw("ws_a")).toEqual([{ time: at[0] }]);
    expect(await raw("ws_b")).toHaveLength(4);
    expect(await hours("verification_counts_hour", "ws_a")).toEqual([72]);
    expect(await hours("verification_totals_hour", "ws_a")).toEqual([72]);
    expect(await hours("verification_counts_day", "ws_a")).toEqual([72]);
    expect(await hours("verification_counts_month", "ws_a")).toHaveLength(1);
    expect(await hours("verification_counts_hour", "ws_b")).toHaveLength(4);
    expect(metrics).toContain('postern_retention_removed_total{kind="verification_events"} 3');
  });

  test("shorter usage retention still keeps raw events for two days, because they may be redelivered", async () => {
    await db.query("insert into analytics_settings (workspace_id, verifications_days) values ('ws_a', 1)");
    await use("ws_a", [NOW_MS - 47 * HOUR_MS, NOW_MS - HOUR_MS]);
    await run();
    expect((await db.query("select from verification_events")).rowCount).toBe(2);
    expect(await hours("verification_counts_hour", "ws_a")).toEqual([1]);
  });
});

test("retention pauses while the outbox is full, and a failure to remove one kind of rows does not affect the other kinds", async () => {
  await addApi("api_1", "ws_a", OLD_MS);
  await db.query(
    "insert into outbox (workspace_id, kind, id) select 'ws_a', 'api', n::text from generate_series(1, 2500) n",
  );
  await run();
  expect(await ids("apis")).toBe("api_1");
  await db.query("delete from outbox");
  // A trigger that refuses simulates any refusal.
  await db.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`);
  await db.query("create trigger refuse before delete on identities for each row execute function refuse()");
  await addIdentity("id_1", "ws_a", OLD_MS);
  const metrics = await run();
  expect(await ids("apis")).toBe("");
  expect(await ids("identities")).toBe("id_1");
  expect(String(failures.at(-1))).toContain("refused");
  expect(metrics).toContain("postern_retention_finished_timestamp_seconds 0");
});
