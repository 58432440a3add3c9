import { describe, expect, test } from "vitest";
import { openRedisEdge } from "../../../edge/open.ts";
import { ProjectionChanged } from "../../../edge/projection/contract.ts";
import { openProjection } from "../../../edge/projection/projection.ts";
import { RedisRecordWriter } from "../../../edge/projection/redis-writer.ts";
import { cachedKey } from "../../harness/cached-key.ts";
import { waitFor } from "../../harness/wait.ts";
import { useOwnEdge } from "./own-edge.ts";
import { aWorkspace } from "./projected.ts";
import { GatedSource, Recording } from "./recording.ts";

/** Failures of Redis only, for a projection: emptied, restarted, lost connections, or foreign writes. */
describe("a projection whose Redis fails", () => {
  const own = useOwnEdge();

  test("change stream entries are numbered without gaps per workspace and globally", async () => {
    const other = aWorkspace();
    const all = [own.ws, other].map(({ workspaceId, refs }) => {
      const write = (version: number) =>
        own.edge.writer.write({
          projectionId: own.projectionId,
          version,
          writes: [{ ref: refs.workspace, data: { id: workspaceId, enabled: true } }],
        });
      return Promise.all(Array.from({ length: 50 }, (_, i) => write(i + 2)));
    });
    await Promise.all([...all, own.beat(), own.beat()]);
    for (const stream of [own.ws.workspaceId, other.workspaceId, "_central"]) {
      const kept = await own.history(stream);
      expect(kept.map(([n]) => n)).toEqual(kept.map((_, i) => i));
      expect(kept.length).toBeGreaterThan(50);
      // The stream contains the last entries with the same ids.
      const entries = await own.raw.xrange(own.keys.changes(stream), "-", "+");
      expect(entries.map(([id, [, p, , n]]) => [p, Number(n), id])).toEqual(
        kept.slice(-4).map(([n, id]) => [own.projectionId, n, id]),
      );
    }
  });

  test("heartbeats are kept for 15 minutes, the longest useful time for a reader", async () => {
    const { workspaceId } = own.ws;
    const [mark, history] = [own.keys.projectionState(workspaceId), own.keys.history(workspaceId)];
    await own.raw.del(history);
    const old = Date.now() - 16 * 60_000;
    const young = old + 2 * 60_000;
    const atMs = (i: number) => (i < 1_500 ? old : young) + i;
    const entries = Array.from({ length: 1_600 }, (_, i) => [i, JSON.stringify([`${atMs(i)}-0`, "k", "heartbeat"])]);
    await own.raw.hset(history, "first", "0", ...entries.flat());
    await own.raw.hset(mark, "head", "1599");
    // Each heartbeat removes 1,000 entries.
    for (const first of [1_000, 1_500, 1_500]) {
      await own.beat();
      const kept = await own.history(workspaceId);
      expect(kept[0]?.[0]).toBe(first);
      expect(kept.at(-1)?.[0]).toBe(kept.length + first - 1);
    }
    expect((await own.history(workspaceId)).length).toBe(103);
  });

  test("change stream is trimmed to its maximum length, and a lagging reader discards its cache", async () => {
    const { workspaceId, writes } = own.ws;
    const writer = new RedisRecordWriter(own.raw, own.keys, { changesMax: 20 });
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId }, listener);
    const many = Array.from({ length: 30 }, () => writes).flat();
    await writer.write({ projectionId: own.projectionId, version: 2, writes: many });
    const kept = await own.history(workspaceId);
    expect(kept.slice(-20).map(([n]) => n)).toEqual(
      Array.from({ length: 20 }, (_, i) => (kept.at(-1)?.[0] ?? 0) - 19 + i),
    );
    await waitFor("the last changes", () => listener.told.at(-1)?.startsWith("key"));
    expect(listener.resets()).toEqual([expect.stringMatching(/changes \d+ to \d+ were missed/)]);
    await following.close();
  });

  test("reader gets all changes in order, even after a reconnect and if they exceed the length of the stream", async () => {
    const { workspaceId } = own.ws;
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId }, listener);
    let written = 0;
    const write = async (count: number) => {
      const refs = Array.from({ length: count }, () => own.ws.ref("role", `role_${++written}`));
      const writes = refs.map((ref) => ({ ref, data: undefined }));
      await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes });
    };
    const reported = () => listener.told.filter((text) => text.startsWith("role"));
    const expected = () => Array.from({ length: written }, (_, i) => `role ${workspaceId} role_${i + 1}`);
    for (const count of [3, 4, 5, 1, 1_200]) {
      await write(count);
      await waitFor(`${written} changes`, () => reported().length >= written);
    }
    await own.raw.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await own.connected();
    await write(2_300);
    await waitFor("those that were missed", () => reported().length >= written);
    expect(reported()).toEqual(expected());
    expect(listener.resets()).toEqual([]);
    // Another projection starts during the outage and has more changes than the stream holds.
    await own.raw.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await own.connected();
    listener.told.length = 0;
    written = 0;
    own.projectionId = "prj_next";
    await own.edge.writer.begin(own.projectionId, [workspaceId]);
    await write(50);
    await waitFor("the changes of the next projection", () => reported().length >= written);
    expect(reported()).toEqual(expected());
    expect(listener.resets()).toEqual(["reset: another projection"]);
    await following.close();
  });

  test("reader without permission for the stream history discards its cache and continues", async () => {
    const { workspaceId, writes } = own.ws;
    await own.raw.call("ACL", "SETUSER", "former", "on", ">x", "+@all", "~*:state:*", "~*:changes:*");
    const url = own.redis.url.replace("//", "//former:x@");
    const edge = await openRedisEdge({ url, clientName: "former" });
    const listener = new Recording();
    const following = await edge.stream.follow({ workspaceId }, listener);
    const many = Array.from({ length: 10 }, () => writes).flat();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: many });
    await waitFor("the last change", () => listener.told.at(-1)?.startsWith("key"));
    expect(listener.resets()).toEqual([expect.stringMatching(/were missed/)]);
    await following.close();
    await edge.close();
  });

  test("gap in the change stream makes a reader discard its cache", async () => {
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    await own.raw.hincrby(own.keys.projectionState(own.ws.workspaceId), "head", 3);
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(0, 2) });
    await waitFor("both changes", () => listener.told.filter((text) => /^(workspace|api)/.test(text)).length === 2);
    expect(listener.resets()).toEqual([expect.stringMatching(/changes \d+ to \d+ were missed/)]);
    await following.close();
  });

  test("for a workspace that lags on the global stream, only its own staleness rises and only its own cache is bypassed", async () => {
    const other = aWorkspace();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: other.writes });
    const source = new GatedSource(own.edge.source);
    const limits = { bypassAfterMs: 1_000, negativeStalenessMs: 1_000 };
    const central = await openProjection({ source, stream: own.edge.stream, follow: "central", limits });
    for (const { workspaceId, hash } of [own.ws, other]) {
      await central.findKey(workspaceId, hash);
      await central.findKey(workspaceId, "unknown");
    }
    const lateMs = await own.edge.writer.nowMs();
    const beat = async () => {
      const t = String(await own.edge.writer.nowMs());
      await own.append("_central", {
        k: "heartbeat",
        t,
        l: `${own.ws.workspaceId}=${lateMs} ws_elsewhere=${lateMs - 1}`,
      });
    };
    const peeks = () =>
      [own.ws, other].map(({ workspaceId, hash }) => cachedKey(central, workspaceId, hash) !== undefined);
    expect(peeks()).toEqual([true, true]);
    await waitFor("the late one alone to be passed by", async () => {
      await beat();
      const [late, prompt] = peeks();
      return prompt && !late;
    });
    const { ms, laggingWorkspaces } = central.streamStaleness();
    expect(laggingWorkspaces).toBe(2);
    expect(central.stalenessMs()).toBeGreaterThan(central.stalenessMs(other.workspaceId));
    expect(central.stalenessMs(own.ws.workspaceId)).toBeGreaterThan(Math.max(ms, 1_000));
    await waitFor("the late one's absences alone to be asked for again", async () => {
      await beat();
      const before = source.reads;
      await central.findKey(other.workspaceId, "unknown");
      const ofPrompt = source.reads - before;
      await central.findKey(own.ws.workspaceId, "unknown");
      return ofPrompt === 0 && source.reads - before === 1;
    });
    await own.beat();
    await waitFor("the late one to be like the others", () => peeks().every(Boolean));
    await central.close();
  });

  test("unreadable heartbeat is ignored", async () => {
    const listener = new Recording();
    const following = await own.edge.stream.follow("central", listener);
    const t = String(await own.edge.writer.nowMs());
    const before = listener.told.length;
    await own.append("_central", { k: "heartbeat", t, l: `ws_a=${t} ws_a=${t}` });
    await own.append("_central", { k: "heartbeat", t: "1e400" });
    await own.append("_central", { k: "heartbeat" });
    await own.append("_central", { k: "key", w: "ws_a", i: "hash" });
    await waitFor("the change", () => listener.told.includes("key ws_a hash"));
    expect(listener.told.slice(before)).toEqual([
      "refused heartbeat",
      "refused heartbeat",
      "refused heartbeat",
      "key ws_a hash",
    ]);
    await following.close();
  });

  test("failed change listener is reset and gets later changes", async () => {
    const told: string[] = [];
    let fails = true;
    const following = await own.edge.stream.follow(
      { workspaceId: own.ws.workspaceId },
      {
        onChange: ({ kind }) => {
          if (kind === "api" && fails) {
            fails = false;
            throw new Error("not now");
          }
          told.push(kind);
        },
        onReset: (reason) => void told.push(`reset: ${reason}`),
        onHeartbeat: () => {},
      },
    );
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(0, 3) });
    await waitFor("the reset", () => told.some((text) => text.startsWith("reset")));
    await own.edge.writer.write({ projectionId: own.projectionId, version: 3, writes: own.ws.writes.slice(-1) });
    await waitFor("the change after it", () => told.at(-1) === "key");
    expect(told.indexOf("workspace")).toBe(0);
    await following.close();
  });

  test("reader gets missed changes after a reconnect without discarding its cache", async () => {
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    await own.raw.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await own.connected();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${own.ws.workspaceId} ${own.ws.hash}`));
    expect(listener.resets()).toEqual([]);
    await following.close();
  });

  test("empty Redis is unusable until a new projection, which rejects old writers", async () => {
    const projection = await own.openProjection();
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "found" });
    await own.raw.flushall();
    expect(await own.edge.source.read([own.ws.refs.key])).toMatchObject({ usable: false });
    expect(await projection.findKey(own.ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "found" });
    expect((await own.edge.writer.state()).projectionId).toBeUndefined();
    await expect(own.beat()).rejects.toBeInstanceOf(ProjectionChanged);
    const reset = new Promise<void>((resolve) => {
      projection.onDropped((ref) => ref === undefined && resolve());
    });
    await own.project();
    await reset;
    await waitFor(
      "the key",
      async () => (await projection.findKey(own.ws.workspaceId, own.ws.hash)).status === "found",
    );
    await projection.close();
  });

  test("workspace that lost its state is projected again instead of treated as new", async () => {
    await own.raw.del(own.keys.projectionState(own.ws.workspaceId));
    expect(await own.edge.source.read([own.ws.refs.key])).toMatchObject({ usable: false });
    const { workspaceId } = own.ws;
    const { projectionId } = own;
    const heartbeat = () => own.edge.writer.heartbeat(projectionId, 1, [workspaceId]);
    expect(await heartbeat()).toEqual({ begun: [workspaceId], incomplete: [] });
    expect(await heartbeat()).toEqual({ begun: [], incomplete: [workspaceId] });
    expect(await own.edge.source.read([own.ws.refs.key])).toMatchObject({ usable: false });
    const write = { projectionId, version: 2, writes: own.ws.writes };
    expect(await own.edge.writer.write(write)).toEqual({ begun: [] });
    await own.edge.writer.completeWorkspace(workspaceId);
    expect(await heartbeat()).toEqual({ begun: [], incomplete: [] });
    expect(await own.edge.source.read([own.ws.refs.key])).toMatchObject({
      usable: true,
      records: [{ state: "found" }],
    });
    // The projection of the other workspaces is unchanged.
    expect(await own.edge.writer.state()).toMatchObject({ projectionId, complete: true });
  });

  test("Redis restarted from an old snapshot is treated as rolled back until a new projection", async () => {
    const projection = await own.openProjection();
    await projection.findKey(own.ws.workspaceId, own.ws.hash);
    const { runId } = await own.edge.writer.state();
    await own.raw.save();
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 2,
      writes: [{ ref: own.ws.refs.key, data: undefined }],
    });
    await own.beat();
    await waitFor(
      "the deletion",
      async () => (await projection.findKey(own.ws.workspaceId, own.ws.hash)).status === "absent",
    );
    await own.redis.restart({ signal: "SIGKILL" });
    await own.connected();
    expect((await own.edge.writer.state()).runId).not.toBe(runId);
    // The rollback is detected immediately, even before the follower notices: the state is behind the known head.
    const wentBack = { usable: false, reason: "the store has gone back in time" };
    expect(await own.edge.source.read([own.ws.refs.key])).toEqual(wentBack);
    await waitFor("the feed to notice", () => projection.sourceState().usable === false);
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "unusable" });

    // Later entries raise the head above the known one. The record is still from the snapshot and still unusable.
    const agedMs = projection.stalenessMs();
    for (let i = 0; i < 8; i++) {
      await own.append(own.ws.workspaceId, { k: "heartbeat", t: String(await own.edge.writer.nowMs()) });
    }
    expect(await own.edge.source.read([own.ws.refs.key])).toEqual(wentBack);
    await waitFor("the heartbeats to be refused", () => projection.refused().heartbeat >= 8);
    expect(projection.stalenessMs()).toBeGreaterThan(agedMs);
    expect(projection.sourceState()).toEqual(wentBack);
    await own.edge.writer.begin("prj_anew", [own.ws.workspaceId]);
    await own.edge.writer.write({ projectionId: "prj_anew", version: 3, writes: own.ws.writes.slice(0, -1) });
    await own.edge.writer.complete("prj_anew", [own.ws.workspaceId]);
    await waitFor(
      "the new one",
      async () => (await projection.findKey(own.ws.workspaceId, own.ws.hash)).status === "absent",
    );
    await own.edge.writer.heartbeat("prj_anew", await own.edge.writer.nowMs(), [own.ws.workspaceId]);
    await waitFor("the source to be usable, and fresh", () => {
      return projection.sourceState().usable && projection.stalenessMs() < agedMs;
    });
    await projection.close();
  });

  test("projection opened while Redis is unreachable starts after recovery", async () => {
    await own.edge.close();
    const before = own.redis.pid;
    await own.redis.kill("SIGKILL");
    await own.openEdge();
    const projection = await own.openProjection();
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "unusable" });
    expect(projection.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    await own.redis.restart();
    expect(own.redis.pid).not.toBe(before);
    await own.connected();
    await own.project();
    await waitFor(
      "the key",
      async () => (await projection.findKey(own.ws.workspaceId, own.ws.hash)).status === "found",
    );
    await waitFor("the heartbeat", () => projection.stalenessMs() < 10_000);
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 2,
      writes: [{ ref: own.ws.refs.key, data: undefined }],
    });
    await waitFor(
      "the deletion",
      async () => (await projection.findKey(own.ws.workspaceId, own.ws.hash)).status === "absent",
    );
    await projection.close();
  });

  test("key tombstones expire after a day, and other tombstones are removed when no record refers to them", async () => {
    const { key, role } = own.ws.refs;
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 9,
      writes: [key, role].map((ref) => ({ ref, data: undefined })),
    });
    const dayMs = 24 * 60 * 60 * 1000;
    const remainingMs = await own.raw.pttl(own.keys.record(key).key);
    expect(remainingMs).toBeGreaterThan(dayMs - 60_000);
    expect(remainingMs).toBeLessThanOrEqual(dayMs);
    expect(await own.raw.pttl(own.keys.record(role).key)).toBe(-1);
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 10,
      writes: [
        { ref: key, data: own.ws.key },
        { ref: role, data: undefined, isRemoved: true },
      ],
    });
    expect(await own.raw.pttl(own.keys.record(role).key)).toBeGreaterThan(dayMs - 60_000);
    expect(await own.raw.pttl(own.keys.record(key).key)).toBe(-1);
  });

  test("override tombstones are removed by the first write after a day", async () => {
    const override = (identifier: string) => own.ws.ref("override", `rlns_1/${identifier}`);
    const { key, field } = own.keys.record(override("old"));
    const tombstones = ["old", "young"].map((identifier) => ({ ref: override(identifier), data: undefined }));
    await own.edge.writer.write({ projectionId: own.projectionId, version: 9, writes: tombstones });
    await own.raw.zadd(own.keys.overridesDeleted(key), Date.now() - 1, field ?? "");
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 10,
      writes: [{ ref: override("new"), data: { any: 1 } }],
    });
    expect((await own.raw.hkeys(key)).sort()).toEqual(["=new", "=young"]);
    expect(await own.raw.zrange(own.keys.overridesDeleted(key), "0", "-1")).toEqual(["=young"]);
  });
});
