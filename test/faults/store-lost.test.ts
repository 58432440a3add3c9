import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import type { RecordRef } from "../../edge/records.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { slowWriter, whileRebuildsWait } from "./held.ts";
import { missChange } from "./missed-change.ts";
import { type LocalApi, makeWorkspace, openSystem, type System } from "./system.ts";

/* Partial or complete data loss of Redis as seen by a gate and the relay. */

/** Returns the active projection when it is complete. */
function projectionId({ edge }: LocalApi, isOther: (id: string) => boolean = () => true): Promise<string> {
  return waitFor("a whole projection", async () => {
    const { complete, projectionId: id } = await edge.writer.state();
    return complete && id !== undefined && isOther(id) ? id : undefined;
  });
}

const keysOf = (system: System) => new RedisKeys(system.prefix);

test("gate discards its cache when trimmed change stream entries were missed", async () => {
  const system = await openSystem();
  const { gate, line, key, workspaceId } = await missChange(system);
  await system.raw.xtrim(keysOf(system).changes(workspaceId), "MAXLEN", 0);
  await system.raw.del(keysOf(system).history(workspaceId));
  expect(await gate.status(key)).toBe(200);
  line.mend();
  await waitFor("the sidecar to refuse", async () => (await gate.status(key)) === 401);
});

test("no gate accepts disabled keys after Redis restarts from an old snapshot", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId, keyId, key } = await makeKey(api);
  const other = await api.data("keys.createKey", { apiId });
  const gate = await system.gate(api, { apiId });
  expect(await gate.status(key)).toBe(200);
  const before = await projectionId(api);
  await system.raw.save();
  await api.data("keys.updateKey", { keyId, enabled: false });
  await api.data("keys.updateKey", { keyId: other.keyId, enabled: false });
  await waitFor("the sidecar to refuse", async () => (await gate.status(key)) === 401);

  await system.redis.restart({ signal: "SIGKILL" });
  const seen = { known: new Set<number>(), unknown: new Set<number>() };
  await waitFor(
    "another projection",
    async () => {
      seen.known.add(await gate.status(key));
      seen.unknown.add(await gate.status(other.key));
      const { complete, projectionId: id } = await api.edge.writer.state();
      return complete && id !== before && (await gate.status(other.key)) === 401;
    },
    { everyMs: 2 },
  );
  expect(seen.known).toEqual(new Set([401]));
  expect(seen.unknown).not.toContain(200);
});

test("deleted workspace does not prevent a new projection", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId, key } = await makeKey(api);
  const gate = await system.gate(api, { apiId });
  const { workspaceId } = await makeWorkspace(system, "ws_deleted");
  await system.db.query(
    "insert into identities (id, workspace_id, external_id, created_at) values ('id_x', $1, 'x', 1)",
    [workspaceId],
  );
  await system.db.query("update workspaces set deleted_at = 5 where id = $1", [workspaceId]);
  const before = await projectionId(api);
  await system.raw.flushall();
  await projectionId(api, (id) => id !== before);
  await waitFor("the sidecar to hear heartbeats again", async () => {
    const stalenessMs = await gate.stalenessMs();
    return stalenessMs !== null && stalenessMs < 1500 && (await gate.status(key)) === 200;
  });
  expect(await gate.edge.source.read([{ workspaceId, kind: "workspace", id: workspaceId }])).toMatchObject({
    usable: true,
    records: [{ state: "gone" }],
  });
});

/** Data that the Redis user of a workspace could write if its ACL allowed it. */
const HOSTILE: Readonly<Record<string, (raw: Redis, keys: RedisKeys, at: Place) => Promise<unknown>>> = {
  "the mark is gone": (raw, keys, { workspaceId }) => raw.del(keys.projectionState(workspaceId)),
  "the mark is a string": (raw, keys, { workspaceId }) => raw.set(keys.projectionState(workspaceId), "x"),
  "the mark's head is no number": (raw, keys, { workspaceId }) =>
    raw.hset(keys.projectionState(workspaceId), "head", "\0abc"),
  "the mark's head went back": (raw, keys, { workspaceId }) => raw.hset(keys.projectionState(workspaceId), "head", "1"),
  "the mark's version is no number": (raw, keys, { workspaceId }) =>
    raw.hset(keys.projectionState(workspaceId), "version", "v"),
  "the mark is of another projection": (raw, keys, { workspaceId }) =>
    raw.hset(keys.projectionState(workspaceId), "projectionId", "prj_other"),
  "the stream is a list": async (raw, keys, { workspaceId }) => {
    await raw.del(keys.changes(workspaceId));
    await raw.lpush(keys.changes(workspaceId), "x");
  },
  "the history is a string": (raw, keys, { workspaceId }) => raw.set(keys.history(workspaceId), "x"),
  "the stream has come to the last id that there is": (raw, keys, { workspaceId }) =>
    raw.xadd(keys.changes(workspaceId), "18446744073709551615-18446744073709551615", "x", "y"),
  "a record is a list": async (raw, keys, { record }) => {
    await raw.del(keys.record(record).key);
    await raw.lpush(keys.record(record).key, "x");
  },
  "overrides are a string": (raw, keys, { workspaceId, namespaceId }) =>
    raw.set(keys.record({ workspaceId, kind: "overridePatterns", id: namespaceId }).key, "x"),
};

interface Place {
  readonly workspaceId: string;
  readonly namespaceId: string;
  readonly record: RecordRef;
}

test.each(Object.entries(HOSTILE))(
  "broken Redis data of one workspace (%s) is repaired without affecting other workspaces",
  async (_, breakIt) => {
    const system = await openSystem();
    const api = await system.api();
    const other = await makeKey(api);
    const otherGate = await system.gate(api, { apiId: other.apiId });
    const { workspaceId, rootKey } = await makeWorkspace(system, "ws_broken");
    const { apiId } = await api.data("apis.createApi", { name: "broken" }, rootKey);
    const { keyId, key } = await api.data("keys.createKey", { apiId }, rootKey);
    const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "broken" }, rootKey);
    const setOverride = (limit: number) =>
      api.data("ratelimit.setOverride", { namespace: namespaceId, identifier: "a*", limit, duration: 60_000 }, rootKey);
    await setOverride(1);
    const gate = await system.gate(api, { apiId, workspaceId, rootKey });
    await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
    const before = await projectionId(api);

    await breakIt(system.raw, keysOf(system), { workspaceId, namespaceId, record: keyRecord(workspaceId, key) });
    await api.data("keys.updateKey", { keyId, enabled: false }, rootKey);
    await setOverride(2);
    for (const enabled of [false, true, false]) {
      await api.data("keys.updateKey", { keyId: other.keyId, enabled });
      await waitFor(
        "the other's sidecar to act",
        async () => {
          return (await otherGate.status(other.key)) === (enabled ? 200 : 401);
        },
        { deadlineMs: 5000 },
      );
    }
    await waitFor("its own sidecar to refuse", async () => (await gate.status(key)) === 401, { deadlineMs: 30_000 });
    await waitFor(
      "its records to be whole",
      async () => {
        const refs = [keyRecord(workspaceId, key), { workspaceId, kind: "overridePatterns", id: namespaceId } as const];
        const read = await api.edge.source.read(refs);
        return (
          read.usable &&
          read.records.every(({ state }) => state === "found") &&
          JSON.stringify(read).includes('"limit":2')
        );
      },
      { deadlineMs: 30_000 },
    );
    // The shared records were not rewritten because of one workspace.
    expect(await projectionId(api)).toBe(before);
  },
);

const keyRecord = (workspaceId: string, key: string): RecordRef => ({ workspaceId, kind: "key", id: hashKey(key) });

test("workspace created during a new projection is part of it", async () => {
  const system = await openSystem();
  await makeWorkspace(system, "ws_before");
  const edge = await system.edge("relay");
  const slow = slowWriter(edge.writer);
  const held = slow.holdWrite();
  const relay = system.relay({ writer: slow.writer, credits: edge.credits });
  await held.reached;
  const { projectionId: begun } = await edge.writer.state();
  await makeWorkspace(system, "ws_meanwhile");
  held.release();
  await waitFor("the projection", async () => (await edge.writer.state()).complete);
  expect((await edge.writer.state()).projectionId).toBe(begun);
  const ref = { workspaceId: "ws_meanwhile", kind: "workspace", id: "ws_meanwhile" } as const;
  await waitFor("the workspace", async () => {
    const batch = await edge.source.read([ref]);
    return batch.usable && batch.records[0]?.state === "found";
  });
  expect(relay.isLeading()).toBe(true);
});

test("Redis that loses its data again gets a new projection immediately, even if the previous one hangs", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId, key } = await makeKey(api);
  let before = await projectionId(api);
  await whileRebuildsWait(system, async () => {
    for (let i = 0; i < 3; i++) {
      await system.raw.flushall();
      before = await waitFor("another to be begun", async () => {
        const { projectionId: id } = await api.edge.writer.state();
        return id !== undefined && id !== before && id;
      });
      // On a slow machine the lock of the previous projection may still be waiting.
      const hasList = async () => ((await system.db.query(LOCK_WAITS)).rowCount ?? 0) > 0;
      await waitFor("the list of roles to wait", hasList, { deadlineMs: 30_000 });
    }
  });
  await projectionId(api, (id) => id === before);
  const gate = await system.gate(api, { apiId });
  await waitFor("the gate to let it in", async () => (await gate.status(key)) === 200);
});

const LOCK_WAITS = `select from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock' and query like '%from roles%'`;
