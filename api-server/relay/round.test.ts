import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import { jsonOf, type RecordWriter } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { BATCH_MAX, FairScheduler, relayBatch } from "./round.ts";

const MiB = 1024 * 1024;
const APIS = 20;
const WORKSPACE = "ws_round";

let database: TestDatabase;
let db: Pool;
let edge: Edge;

beforeAll(async () => {
  database = await createTestDatabase();
  // A round needs one connection.
  db = createPool(database.url, { connectionsMax: 1 });
  edge = createMemoryEdge();
  await edge.writer.begin("prj", []);
  await edge.writer.complete("prj", []);
});
afterAll(async () => {
  await edge.close();
  await db.end();
  await database.drop();
});

interface Part {
  readonly version: number;
  readonly bytes: number;
  readonly refs: readonly RecordRef[];
}

/** Writes and records what it is given; runs `between` after each part. */
function noting(deps: Part[], between: () => Promise<void>): RecordWriter {
  const write: RecordWriter["write"] = async (batch) => {
    const bytes = batch.writes.reduce((sum, write) => sum + Buffer.byteLength(jsonOf(write) ?? ""), 0);
    deps.push({ version: batch.version, bytes, refs: batch.writes.map(({ ref }) => ref) });
    const result = await edge.writer.write(batch);
    await between();
    return result;
  };
  return new Proxy(edge.writer, {
    get: (target, name) => (name === "write" ? write : Reflect.get(target, name).bind(target)),
  });
}

test("relay batch reads large records a few at a time, all from one snapshot", async () => {
  await db.query("insert into workspaces (id, name, created_at) values ($1, 'round', 1)", [WORKSPACE]);
  // The key refers to an API whose mark comes after its own.
  await db.query("set session_replication_role = replica");
  await db.query(
    "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ('key', $1, 'api_20', 'h', 's', 1)",
    [WORKSPACE],
  );
  await db.query("set session_replication_role = origin");
  await db.query("update keys set name = 'at first'");
  await db.query(
    `insert into apis (id, workspace_id, key_space_id, name, created_at)
     select 'api_' || i, $1, 'ks_' || i, repeat('x', $2), 1 from generate_series(1, $3) as i`,
    [WORKSPACE, MiB, APIS],
  );
  const other = createPool(database.url, { connectionsMax: 1 });
  const deps: Part[] = [];
  const writer = noting(deps, async () => {
    await other.query("update apis set name = 'changed meanwhile'");
    await other.query("update keys set name = 'changed meanwhile'");
  });

  const relayed = await relayBatch({ db, writer, projectionId: "prj" }, new FairScheduler());

  expect(relayed.relayed).toBeGreaterThan(APIS);
  expect(deps.length).toBeGreaterThanOrEqual(3);
  for (const { bytes } of deps) expect(bytes).toBeLessThan(10 * MiB);
  expect(new Set(deps.map(({ version }) => version)).size).toBe(1);
  const kinds = deps.flatMap(({ refs }) => refs.map(({ kind }) => kind));
  expect(kinds.filter((kind) => kind === "api")).toHaveLength(APIS);
  expect(kinds.indexOf("key")).toBeGreaterThan(kinds.lastIndexOf("api"));
  const read = await edge.source.read([{ workspaceId: WORKSPACE, kind: "key", id: "h" }]);
  expect(read).toMatchObject({ usable: true, records: [{ state: "found", data: { keyId: "key" } }] });
  expect(JSON.stringify(read)).not.toContain("meanwhile");

  // The concurrent change has its own marks, which this round did not touch.
  await relayBatch({ db, writer: edge.writer, projectionId: "prj" }, new FairScheduler());
  const again = await edge.source.read([{ workspaceId: WORKSPACE, kind: "key", id: "h" }]);
  expect(JSON.stringify(again)).toContain("meanwhile");
  await other.end();
});

test("relay detects a truncated table even if more entries precede the truncation than fit into one batch", async () => {
  await db.query("delete from outbox");
  await db.query(
    "insert into outbox (workspace_id, kind, id) select $1, 'api', 'api_' || i from generate_series(1, $2::integer) as i",
    [WORKSPACE, 3 * BATCH_MAX],
  );
  await db.query("truncate policies");
  const turns = new FairScheduler();
  const carry = () => relayBatch({ db, writer: edge.writer, projectionId: "prj" }, turns);
  await expect(carry()).rejects.toMatchObject({ name: "TableEmptied", seqs: [expect.any(Number)] });
});

test("relay alternates between workspaces and sends small transactions first", async () => {
  await db.query("delete from outbox");
  const add = (workspaceId: string, count: number, bulk: boolean) =>
    db.query(
      `insert into outbox (workspace_id, kind, id, bulk)
       select $1, 'api', 'api_' || i, $3 from generate_series(1, $2::integer) as i`,
      [workspaceId, count, bulk],
    );
  await add("ws_large", 10 * BATCH_MAX, true);
  await add("ws_many", 5 * BATCH_MAX, false);
  await add("ws_small", 3, false);
  await add("ws_large", 2, false);
  const turns = new FairScheduler();
  const left = async () => {
    const text = "select workspace_id || ' ' || bulk as lane, count(*) as marks from outbox group by 1";
    const { rows } = await db.query<{ lane: string; marks: number }>(text);
    return Object.fromEntries(rows.map(({ lane, marks }) => [lane, marks]));
  };
  const round = await relayBatch({ db, writer: edge.writer, projectionId: "prj" }, turns);
  expect(round.isFull).toBe(true);
  const after = await left();
  expect(after).not.toHaveProperty("ws_small false");
  expect(after).not.toHaveProperty("ws_large false");
  // Both the large transaction and the many small ones make progress.
  expect(after["ws_large true"]).toBeLessThan(10 * BATCH_MAX);
  expect(after["ws_many false"]).toBeLessThan(5 * BATCH_MAX);
  while ((await relayBatch({ db, writer: edge.writer, projectionId: "prj" }, turns)).relayed > 0);
  expect(await left()).toEqual({});
});
