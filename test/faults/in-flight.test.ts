import { describe, expect, test } from "vitest";
import { createPostgresSource } from "../../api-server/db/records.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { Lookup } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { cachedKey } from "../harness/cached-key.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { slowSource, slowWriter } from "./held.ts";
import { type LocalApi, openSystem, type System } from "./system.ts";

const viewOf = (lookup: Lookup<KeyView>): KeyView => {
  if (lookup.status !== "found") throw new Error(`the key is ${lookup.status}`);
  return lookup.value;
};

/** Returns the visible part of a key: whether it is enabled, and the permissions of its role. */
const seen = (lookup: Lookup<KeyView>) => {
  const { key, permissions } = viewOf(lookup);
  return { enabled: key.enabled, permissions: [...permissions].sort() };
};

describe.each([
  { reader: "an api-server's projection over Postgres", central: true },
  { reader: "a sidecar's projection over Redis", central: false },
])("$reader with a record in flight while its change arrives,", ({ central }) => {
  test.each([
    {
      part: "the key",
      // The key is read before its references.
      which: 0,
      kind: "key",
      change: "update keys set enabled = false",
      before: { enabled: true, permissions: ["a.read"] },
      after: { enabled: false, permissions: ["a.read"] },
    },
    {
      part: "a role of the key",
      which: 1,
      kind: "role",
      change: "delete from role_permissions",
      before: { enabled: true, permissions: ["a.read"] },
      after: { enabled: true, permissions: [] },
    },
  ])("reader that read $part before it changed returns the old version at most once", async (given) => {
    const system = await openSystem();
    const api = await system.api();
    await api.data("permissions.createPermission", { name: "a.read", slug: "a.read" });
    await api.data("permissions.createRole", { name: "reader" });
    await system.db.query("insert into role_permissions select r.id, p.id, r.workspace_id from roles r, permissions p");
    const { key } = await makeKey(api, { roles: ["reader"] });
    const workspaceId = await system.workspaceId();
    const hash = hashKey(key);
    await untilProjected(api, workspaceId, hash);

    const edge = await system.edge("reader");
    const source = slowSource(central ? createPostgresSource(system.db) : edge.source);
    const follow = central ? "central" : { workspaceId };
    const projection = system.closing(await openProjection({ source, stream: edge.stream, follow }));
    // A later heartbeat proves that the setup changes have been processed.
    const madeAtMs = await edge.writer.nowMs();
    await waitFor("a heartbeat", async () => (await edge.writer.nowMs()) - projection.stalenessMs() > madeAtMs);

    const held = source.holdRead(given.which);
    const early = projection.findKey(workspaceId, hash);
    await held.reached;
    const told = new Promise<void>((resolve) => {
      projection.onDropped((ref) => ref?.kind === given.kind && resolve());
    });
    await system.db.query(given.change);
    await told;
    const late = projection.findKey(workspaceId, hash);
    held.release();
    expect(seen(await early)).toEqual(given.before);
    expect(seen(await late)).toEqual(given.after);
    expect(seen(await projection.findKey(workspaceId, hash))).toEqual(given.after);
    const peeked = cachedKey(projection, workspaceId, hash);
    expect(peeked && seen({ status: "found", value: peeked })).toEqual(given.after);
  });
});

async function untilProjected({ edge }: LocalApi, workspaceId: string, hash: string): Promise<void> {
  await waitFor("the projected key", async () => {
    const batch = await edge.source.read([{ workspaceId, kind: "key", id: hash }]);
    return batch.usable && batch.records[0]?.state === "found";
  });
}

describe("a relay that was paused between reading and writing, while another took over,", () => {
  test.each([
    { what: "a key deleted for good", change: (id: string) => ["delete from keys where id = $1", [id]] as const },
    {
      what: "a key under its old hash",
      change: (id: string) => ["update keys set hash = 'another' where id = $1", [id]] as const,
    },
    {
      what: "a key deleted softly",
      change: (id: string) => ["update keys set deleted_at = 5 where id = $1", [id]] as const,
    },
  ])("paused relay does not restore $what", async ({ change }) => {
    const system = await openSystem();
    const { ref, keyId } = await aProjectedKey(system);
    const edge = await system.edge("relays");
    const slow = slowWriter(edge.writer);
    const first = system.relay({ writer: slow.writer, credits: edge.credits });
    await waitFor("the first relay to lead", () => first.isLeading());

    const held = slow.holdWrite();
    await system.db.query("update keys set name = 'held' where id = $1", [keyId]);
    await held.reached;
    await system.db.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'postern-relay%' and datname = current_database()",
    );
    const second = system.relay(edge);
    await waitFor("the second relay to lead", () => second.isLeading());
    const [sql, values] = change(keyId);
    await system.db.query(sql, [...values]);
    const state = async () => {
      const batch = await edge.source.read([ref]);
      return batch.usable ? batch.records[0]?.state : batch.reason;
    };
    await waitFor("the tombstone", async () => (await state()) === "gone");
    held.release();
    await held.ended;
    expect(await state()).toBe("gone");
    // The same holds after the paused relay has resumed.
    await system.db.query("update workspaces set enabled = enabled");
    await waitFor("an empty outbox", async () => {
      const { rowCount } = await system.db.query("select from outbox limit 1");
      return rowCount === 0;
    });
    expect(await state()).toBe("gone");
  });
});

/** Creates a projected key and stops the api-server that relays. */
async function aProjectedKey(system: System) {
  const api = await system.api();
  const { key, keyId } = await makeKey(api);
  const workspaceId = await system.workspaceId();
  await untilProjected(api, workspaceId, hashKey(key));
  await api.server.close();
  return { keyId, ref: { workspaceId, kind: "key", id: hashKey(key) } as const };
}

test("changes committed before time T are streamed before the heartbeat of T, despite out-of-order commits", async () => {
  const system = await openSystem();
  const api = await system.api();
  const { apiId } = await makeKey(api);
  const workspaceId = await system.workspaceId();
  const history = new RedisKeys(system.prefix).history(workspaceId);
  /** Redis time at the acknowledgement of the commit, by hash. */
  const committedAtMs = new Map<string, number>();
  let isStopped = false;

  const write = async (writer: number): Promise<void> => {
    const tx = await system.db.connect();
    try {
      for (let i = 0; !isStopped; i++) {
        const hash = `hash-${writer}-${i}`;
        await tx.query("begin");
        await tx.query(
          "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ($1, $2, $3, $4, 's', 1)",
          [`key_${writer}_${i}`, workspaceId, apiId, hash],
        );
        // Some transactions commit immediately, some long after later writers.
        await tx.query("select pg_sleep($1)", [[0, 0.005, 0.05, 0.3][(writer + i) % 4]]);
        await tx.query("commit");
        committedAtMs.set(hash, await api.edge.writer.nowMs());
      }
    } finally {
      tx.release();
    }
  };
  const writing = [1, 2, 3, 4, 5, 6].map(write);
  const readHistory = async () => {
    const all = Object.entries(await system.raw.hgetall(history)).filter(([n]) => /^\d+$/.test(n));
    return all.sort(([a], [b]) => Number(a) - Number(b)).map(([, text]) => (JSON.parse(text) as string[]).slice(1));
  };
  const beats = () => readHistory().then((all) => all.filter((fields) => fields.includes("heartbeat")).length);
  const first = await beats();
  await waitFor("some heartbeats", async () => (await beats()) >= first + 4);
  isStopped = true;
  await Promise.all(writing);
  const last = await api.edge.writer.nowMs();
  const fieldsOf = (fields: string[]) =>
    Object.fromEntries(fields.flatMap((name, i) => (i % 2 ? [] : [[name, fields[i + 1]]])));
  const entries = await waitFor("a heartbeat of after the last commit", async () => {
    const all = (await readHistory()).map(fieldsOf);
    return all.some((entry) => Number(entry.t) > last) ? all : undefined;
  });

  const early: string[] = [];
  const delivered = new Set<string>();
  for (const entry of entries) {
    if (entry.k === "key") delivered.add(entry.i ?? "");
    if (entry.k !== "heartbeat") continue;
    for (const [hash, atMs] of committedAtMs) {
      if (atMs < Number(entry.t) && !delivered.has(hash))
        early.push(`${hash}, committed ${Number(entry.t) - atMs} ms before`);
    }
  }
  expect(committedAtMs.size).toBeGreaterThan(100);
  expect(early).toEqual([]);
});
