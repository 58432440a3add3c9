import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeId } from "../../core/ids.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import type { KeyRecord } from "../../core/records.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import type { ReadRecord } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { createTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { createRelayWaker } from "../db/relay-waker.ts";
import { type Relay, startRelay } from "./relay.ts";

/*
 * The relay over a real Postgres and a real Redis. Rows are written as with psql: the relay learns of them only from the
 * triggers.
 */

const WORKSPACE = "ws_relay";
const API = "api_relay";
const ROLE = "role_relay";
const log = pino({ level: "silent" });

let database: TestDatabase;
let redis: TestRedis;
let db: Pool;
let edge: Edge;
let relays: Relay[];

beforeEach(async () => {
  [database, redis] = await Promise.all([createTestDatabase(), createTestRedis()]);
  db = createPool(database.url, { connectionsMax: 6, onIdleError: () => undefined });
  edge = await openRedisEdge({ url: redis.url, prefix: redis.prefix.replace(/:$/, ""), clientName: "relay-test" });
  relays = [];
  await db.query(`insert into workspaces (id, name, created_at) values ('${WORKSPACE}', 'relay', 1)`);
  await db.query(`insert into apis (id, workspace_id, key_space_id, name, created_at)
                  values ('${API}', '${WORKSPACE}', 'ks_relay', 'payments', 1)`);
  await db.query(
    `insert into roles (id, workspace_id, name, created_at) values ('${ROLE}', '${WORKSPACE}', 'editor', 1)`,
  );
  await db.query(`insert into permissions (id, workspace_id, slug, name, created_at)
                  values ('perm_a', '${WORKSPACE}', 'a.read', 'a', 1), ('perm_b', '${WORKSPACE}', 'b.read', 'b', 1)`);
});

afterEach(async () => {
  await Promise.all(relays.map((relay) => relay.close()));
  await edge.close();
  await db.end();
  await Promise.all([database.drop(), redis.close()]);
});

function aRelay(): Relay {
  const relay = startRelay({
    databaseUrl: database.url,
    writer: edge.writer,
    credits: edge.credits,
    log,
    metrics: new Registry(),
    newProjectionId: () => makeId("event", randomBytes(24)),
  });
  relays.push(relay);
  return relay;
}

/** Starts a relay and waits until everything is projected. */
async function aReadyRelay(): Promise<Relay> {
  const relay = aRelay();
  await untilProjected();
  return relay;
}

/** Resolves when the projection is complete in the store and recorded in Postgres: only then another relay resumes it. */
async function untilProjected(): Promise<string> {
  return waitFor("the projection", async () => {
    const { complete, projectionId } = await edge.writer.state();
    const text = "select value ->> 'projectionId' as id from settings where name = 'projection'";
    const { rows } = await db.query<{ id: string }>(text);
    return complete && rows[0]?.id === projectionId ? projectionId : undefined;
  });
}

interface TestKey {
  readonly id: string;
  readonly hash: string;
  readonly ref: RecordRef;
}

async function insertKey(name: string): Promise<TestKey> {
  const key = aKey(name);
  await db.query(
    "insert into keys (id, workspace_id, api_id, hash, start, name, created_at) values ($1, $2, $3, $4, 's', $5, 1)",
    [key.id, WORKSPACE, API, key.hash, name],
  );
  return key;
}

/** All in one transaction. Returns the last of them. */
async function insertManyKeys(count: number): Promise<TestKey> {
  const made = Array.from({ length: count }, (_, i) => aKey(`many_${i}`));
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select id, $1, $2, hash, 's', 1 from unnest($3::text[], $4::text[]) as k (id, hash)`,
    [WORKSPACE, API, made.map(({ id }) => id), made.map(({ hash }) => hash)],
  );
  return aKey(`many_${count - 1}`);
}

function aKey(name: string): TestKey {
  const hash = hashKey(`secret of ${name}`);
  return { id: `key_${name}`, hash, ref: { workspaceId: WORKSPACE, kind: "key", id: hash } };
}

async function read(ref: RecordRef): Promise<ReadRecord> {
  const batch = await edge.source.read([ref]);
  const [record] = batch.usable ? batch.records : [];
  if (record === undefined) throw new Error(batch.usable ? "no record" : batch.reason);
  return record;
}

/** Returns the projected key as soon as `holds` is true for it. */
async function untilKey(key: TestKey, what: string, holds: (record: KeyRecord) => boolean): Promise<KeyRecord> {
  return waitFor(what, async () => {
    const record = await read(key.ref);
    return record.state === "found" && holds(record.data as KeyRecord) ? (record.data as KeyRecord) : undefined;
  });
}

const untilDisconnected = (ref: RecordRef) => waitFor("the tombstone", async () => (await read(ref)).state === "gone");

/** How many marks wait. */
async function outboxDepth(): Promise<number> {
  const { rows } = await db.query<{ depth: number }>("select count(*) as depth from outbox");
  return rows[0]?.depth ?? -1;
}

async function currentVersion(): Promise<number> {
  const { rows } = await db.query<{ last_value: number }>("select last_value from projection_version");
  return rows[0]?.last_value ?? 0;
}

describe("a change", () => {
  test("relay projects an UPDATE made directly in psql", async () => {
    const key = await insertKey("direct");
    await aReadyRelay();
    expect((await untilKey(key, "the key", () => true)).enabled).toBe(true);
    await db.query("update keys set enabled = false where id = $1", [key.id]);
    await untilKey(key, "the disabled key", (record) => !record.enabled);
    await db.query("update apis set ip_allow_list = '{10.0.0.1}' where id = $1", [API]);
    await waitFor("the API's list", async () => {
      const record = await read({ workspaceId: WORKSPACE, kind: "api", id: API });
      return record.state === "found" && (record.data as { ipAllowList?: string[] }).ipAllowList?.[0] === "10.0.0.1";
    });
  });

  test("relay projects a change immediately", async () => {
    const key = await insertKey("quick");
    await aReadyRelay();
    await untilKey(key, "the key", () => true);
    const tookMs: number[] = [];
    const wakeRelay = createRelayWaker(db);
    for (let turn = 0; turn < 10; turn++) {
      const startedAt = performance.now();
      await db.query("update keys set name = $2 where id = $1", [key.id, `turn ${turn}`]);
      wakeRelay();
      await waitFor(
        "the name",
        async () => {
          const record = await read(key.ref);
          return record.state === "found" && (record.data as KeyRecord).name === `turn ${turn}`;
        },
        { everyMs: 5 },
      );
      tookMs.push(performance.now() - startedAt);
    }
    // With polling only, ten of them would take ten seconds; a busy machine may delay one or two.
    expect(tookMs.toSorted((a, b) => a - b)[5]).toBeLessThan(300);
  });

  test("relay keeps both changes of one key when transactions commit in reverse order", async () => {
    const key = await insertKey("two");
    await aReadyRelay();
    await untilKey(key, "the key", () => true);
    const [first, second] = [await db.connect(), await db.connect()];
    try {
      // The first transaction marks first, and commits last.
      await first.query("begin");
      await first.query("update keys set name = 'renamed' where id = $1", [key.id]);
      await second.query("begin");
      await second.query("insert into key_permissions values ($1, 'perm_a', $2)", [key.id, WORKSPACE]);
      await second.query("commit");
      await untilKey(key, "the permission", (record) => record.permissions.includes("a.read"));
      await first.query("commit");
    } finally {
      first.release();
      second.release();
    }
    const record = await untilKey(key, "the name", ({ name }) => name === "renamed");
    expect(record.permissions).toEqual(["a.read"]);
    await waitFor("an empty outbox", async () => (await outboxDepth()) === 0);
  });

  test("relay rewrites only the role record when a role changes", async () => {
    const key = await insertKey("member");
    await db.query("insert into key_roles values ($1, $2, $3)", [key.id, ROLE, WORKSPACE]);
    await aReadyRelay();
    await untilKey(key, "the key", ({ roleIds }) => roleIds.includes(ROLE));
    const before = await read(key.ref);
    await db.query("insert into role_permissions values ($1, 'perm_b', $2)", [ROLE, WORKSPACE]);
    await waitFor("the role", async () => {
      const record = await read({ workspaceId: WORKSPACE, kind: "role", id: ROLE });
      return record.state === "found" && (record.data as { permissions: string[] }).permissions.includes("b.read");
    });
    expect(await read(key.ref)).toEqual(before);
  });

  test("relay creates a change stream and records for a new workspace immediately", async () => {
    await aReadyRelay();
    await db.query("insert into workspaces (id, name, created_at) values ('ws_new', 'new', 1)");
    await waitFor(
      "the new workspace",
      async () => {
        const record = await read({ workspaceId: "ws_new", kind: "workspace", id: "ws_new" });
        return record.state === "found";
      },
      { deadlineMs: 2000 },
    );
  });

  test("relay sends no heartbeat before it has relayed a backlog of 10,000 rows", async () => {
    await (await aReadyRelay()).close();
    const last = await insertManyKeys(10_000);
    const committedAtMs = await edge.writer.nowMs();
    const found: string[] = [];
    const following = await edge.stream.follow(
      { workspaceId: WORKSPACE },
      {
        onChange: () => undefined,
        onReset: () => undefined,
        onHeartbeat: (asOfMs) => {
          if (asOfMs > committedAtMs) void read(last.ref).then(({ state }) => found.push(state));
        },
      },
    );
    aRelay();
    await waitFor("two heartbeats of after the commit", () => found.length >= 2, { deadlineMs: 25_000 });
    await following.close();
    expect(found).not.toContain("missing");
  });
});

describe("the name of a namespace", () => {
  const byName = async (name: string): Promise<unknown> => {
    const batch = await edge.source.read([{ workspaceId: WORKSPACE, kind: "namespaceName", id: name }]);
    const record = batch.usable ? batch.records[0] : undefined;
    return record?.state === "found" ? record.data : record?.state;
  };
  const isKnown = async (name: string, id: string): Promise<boolean> => {
    const record = (await byName(name)) as { id?: unknown; deleted?: unknown } | undefined;
    return record?.id === id && record.deleted === false;
  };
  const insert = (id: string, name: string, deletedAt: number | null = null) =>
    db.query(
      `insert into ratelimit_namespaces (id, workspace_id, name, created_at, deleted_at) values ($1, '${WORKSPACE}', $2, 1, $3)`,
      [id, name, deletedAt],
    );

  test("relay includes namespace names in each projection and follows renames", async () => {
    await insert("rlns_1", "edge");
    await insert("rlns_0", "edge", 5);
    await insert("rlns_2", "gone", 5);
    // So that only what projects everything writes them.
    await db.query("delete from outbox");
    await aReadyRelay();
    expect(await byName("edge")).toEqual({ id: "rlns_1", name: "edge", deleted: false });
    expect(await byName("gone")).not.toMatchObject({ deleted: false });
    await db.query("update ratelimit_namespaces set name = 'front' where id = 'rlns_1'");
    await waitFor("the new name", () => isKnown("front", "rlns_1"));
    expect(await isKnown("edge", "rlns_1")).toBe(false);
    await insert("rlns_3", "edge");
    await waitFor("the name to be another's", () => isKnown("edge", "rlns_3"));
  });

  test("relay adds namespace names to a projection of the previous version", async () => {
    for (let at = 0; at < 300; at++) await insert(`rlns_${at}`, `edge ${at}`);
    const relay = await aReadyRelay();
    const state = () => edge.writer.state();
    const { projectionId } = await state();
    await relay.close();
    const raw = new Redis(redis.url);
    for (let at = 0; at < 300; at++) await raw.del(`${redis.prefix}${WORKSPACE}:nn:{edge ${at}}`);
    raw.disconnect();
    await db.query("delete from settings where name = 'projection-names'");
    expect(await byName("edge 1")).toBe("missing");
    aRelay();
    await waitFor("all names", async () => {
      for (const at of [0, 1, 250, 299]) if (!(await isKnown(`edge ${at}`, `rlns_${at}`))) return false;
      return true;
    });
    expect((await state()).projectionId).toBe(projectionId);
  });
});

describe("a deleted key", () => {
  test("deleted key stays deleted when a slow relay writes older data", async () => {
    const key = await insertKey("deleted");
    await aReadyRelay();
    const record = await untilKey(key, "the key", () => true);
    const slowVersion = await currentVersion();
    const { projectionId = "" } = await edge.writer.state();
    await db.query("delete from keys where id = $1", [key.id]);
    await untilDisconnected(key.ref);
    await edge.writer.write({ projectionId, version: slowVersion, writes: [{ ref: key.ref, data: record }] });
    expect((await read(key.ref)).state).toBe("gone");
  });

  test("key with a changed hash leaves a tombstone at the old hash", async () => {
    const key = await insertKey("before");
    await aReadyRelay();
    const record = await untilKey(key, "the key", () => true);
    const slowVersion = await currentVersion();
    const { projectionId = "" } = await edge.writer.state();
    const after = aKey("after");
    await db.query("update keys set hash = $2 where id = $1", [key.id, after.hash]);
    await untilDisconnected(key.ref);
    expect((await untilKey(after, "the key under its new hash", () => true)).keyId).toBe(key.id);
    await edge.writer.write({ projectionId, version: slowVersion, writes: [{ ref: key.ref, data: record }] });
    expect((await read(key.ref)).state).toBe("gone");
  });

  test("key disappears when it is marked as deleted and reappears when the mark is removed", async () => {
    const key = await insertKey("soft");
    await aReadyRelay();
    await untilKey(key, "the key", () => true);
    await db.query("update keys set deleted_at = 5 where id = $1", [key.id]);
    await untilDisconnected(key.ref);
    await db.query("update keys set deleted_at = null where id = $1", [key.id]);
    await untilKey(key, "the key again", () => true);
  });
});

describe("two relays", () => {
  test("second relay takes over without losing changes when the leader loses its connection", async () => {
    const key = await insertKey("passed");
    aRelay();
    aRelay();
    const leading = () => relays.filter((relay) => relay.isLeading());
    await waitFor("a leader", () => leading().length === 1);
    const projectionId = await untilProjected();
    expect(leading()).toHaveLength(1);

    const { rowCount } = await db.query(
      `select pg_terminate_backend(l.pid)
         from pg_locks l
        where l.locktype = 'advisory' and l.granted
          and l.database = (select oid from pg_database where datname = current_database())`,
    );
    expect(rowCount).toBe(1);
    await db.query("update keys set name = 'meanwhile' where id = $1", [key.id]);
    await untilKey(key, "the name", ({ name }) => name === "meanwhile");
    expect(leading()).toHaveLength(1);
    // A change of the leader alone does not cause a new projection.
    expect((await edge.writer.state()).projectionId).toBe(projectionId);
  });

  test("second relay takes over when the leader closes", async () => {
    const first = await aReadyRelay();
    await waitFor("the leader", () => first.isLeading());
    const second = aRelay();
    await first.close();
    await waitFor("the second one to lead", () => second.isLeading());
    const key = await insertKey("handed");
    await untilKey(key, "the key", () => true);
  });
});

describe("a new projection", () => {
  test("relay starts a new projection when Postgres was restored to an older state", async () => {
    const key = await insertKey("restored");
    const relay = await aReadyRelay();
    await untilKey(key, "the key", () => true);
    const before = await edge.writer.state();
    await relay.close();
    await edge.writer.write({
      projectionId: before.projectionId ?? "",
      version: before.version + 1000,
      writes: [{ ref: key.ref, data: { ...((await read(key.ref)) as { data: object }).data, name: "of the future" } }],
    });
    aRelay();
    await untilKey(key, "what Postgres says", ({ name }) => name === "restored");
    expect((await edge.writer.state()).projectionId).not.toBe(before.projectionId);
    await db.query("update keys set name = 'later' where id = $1", [key.id]);
    await untilKey(key, "a later change", ({ name }) => name === "later");
  });

  test("relay starts a new projection when Redis contains another database's projection", async () => {
    const stranger: RecordRef = { workspaceId: WORKSPACE, kind: "key", id: hashKey("stranger") };
    await edge.writer.begin("another", [WORKSPACE]);
    await edge.writer.write({
      projectionId: "another",
      version: 1,
      writes: [{ ref: stranger, data: { keyId: "key_x" } }],
    });
    await edge.writer.complete("another", [WORKSPACE]);
    aRelay();
    await waitFor("a projection of ours", async () => {
      const state = await edge.writer.state();
      return state.projectionId !== "another" && state.complete;
    });
    expect((await read(stranger)).state).toBe("missing");
  });

  test("new projection includes changes that are made while it is being written", async () => {
    const last = await insertManyKeys(3000);
    await db.query("delete from outbox");
    aRelay();
    const [renamed, deleted] = [aKey("many_0"), aKey("many_1")];
    await waitFor("the beginning", async () => (await edge.writer.state()).projectionId !== undefined);
    await db.query("update keys set name = 'renamed' where id = $1", [renamed.id]);
    await db.query("delete from keys where id = $1", [deleted.id]);
    await waitFor("the end", async () => (await edge.writer.state()).complete, { deadlineMs: 25_000 });
    await untilKey(renamed, "the new name", ({ name }) => name === "renamed");
    await waitFor("the deleted one", async () => (await read(deleted.ref)).state !== "found");
    expect((await read(last.ref)).state).toBe("found");
  });
});
