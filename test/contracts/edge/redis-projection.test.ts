import { describe, expect, test } from "vitest";
import { ProjectionChanged } from "../../../edge/projection/contract.ts";
import { openProjection } from "../../../edge/projection/projection.ts";
import { cachedKey } from "../../harness/cached-key.ts";
import { waitFor } from "../../harness/wait.ts";
import { useOwnEdge } from "./own-edge.ts";
import { aWorkspace } from "./projected.ts";
import { GatedSource, Recording } from "./recording.ts";

/** Failures of Redis alone, for a projection: emptied, restarted, lost connections, or written to by others. */
describe("a projection whose Redis fails", () => {
  const own = useOwnEdge();

  test("entries are numbered without a gap, on the feed of each workspace and on the central one", async () => {
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
    for (const feed of [own.ws.workspaceId, other.workspaceId, "_central"]) {
      const entries = await own.raw.xrange(own.keys.changes(feed), "-", "+");
      const ofProjection = entries.map(([, fields]) => fields).filter((fields) => fields[1] === own.projectionId);
      const numbers = ofProjection.map((fields) => Number(fields[3]));
      expect(numbers).toEqual(numbers.map((_, i) => i));
      expect(numbers.length).toBeGreaterThan(50);
    }
  });

  test("heartbeats are kept for a quarter of an hour, which is as long as a reader can use them", async () => {
    const { workspaceId } = own.ws;
    const stream = own.keys.changes(workspaceId);
    await own.raw.del(stream);
    const old = Date.now() - 16 * 60_000;
    const young = old + 2 * 60_000;
    const add = own.raw.pipeline();
    for (let i = 0; i < 1_000; i++) add.xadd(stream, `${old + i}-0`, "p", own.projectionId, "n", "1", "k", "heartbeat");
    for (let i = 0; i < 100; i++) add.xadd(stream, `${young + i}-0`, "p", own.projectionId, "n", "1", "k", "heartbeat");
    await add.exec();
    for (let beat = 0; beat < 3; beat++) await own.beat();
    const kept = await own.raw.xrange(stream, "-", "+");
    expect(kept.filter(([id]) => Number(id.split("-")[0]) >= young)).toHaveLength(103);
    // Redis trims whole nodes, which hold a hundred entries.
    expect(kept.length).toBeLessThan(103 + 100);
  });

  test("a gap in the change stream drops everything", async () => {
    const listener = new Recording();
    const following = await own.edge.feed.follow({ workspaceId: own.ws.workspaceId }, listener);
    await own.raw.hincrby(own.keys.mark(own.ws.workspaceId), "head", 3);
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(0, 2) });
    await waitFor("both changes", () => listener.told.filter((text) => /^(workspace|api)/.test(text)).length === 2);
    expect(listener.resets()).toEqual([expect.stringMatching(/changes \d+ to \d+ were missed/)]);
    await following.close();
  });

  test("a workspace that lags on the central feed is as stale as its own time says, and only its cache is bypassed", async () => {
    const other = aWorkspace();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: other.writes });
    const source = new GatedSource(own.edge.source);
    const limits = { bypassAfterMs: 1_000, absenceStaleMs: 1_000 };
    const central = await openProjection({ source, feed: own.edge.feed, follow: "central", limits });
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
    const { ms, laggingWorkspaces } = central.feedStaleness();
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

  test("an unreadable heartbeat is ignored, and everything else continues", async () => {
    const listener = new Recording();
    const following = await own.edge.feed.follow("central", listener);
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

  test("a listener that failed is reset, and gets later changes", async () => {
    const told: string[] = [];
    let fails = true;
    const following = await own.edge.feed.follow(
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

  test("after a lost connection the missed changes are reported, and nothing is dropped", async () => {
    const listener = new Recording();
    const following = await own.edge.feed.follow({ workspaceId: own.ws.workspaceId }, listener);
    await own.raw.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await own.connected();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${own.ws.workspaceId} ${own.ws.hash}`));
    expect(listener.resets()).toEqual([]);
    await following.close();
  });

  test("an emptied Redis is not usable, then a new projection drops everything, and a writer of the old one gets ProjectionChanged", async () => {
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

  test("a workspace that has lost its mark is projected again, not treated as a new one", async () => {
    await own.raw.del(own.keys.mark(own.ws.workspaceId));
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
    // The whole projection, with the other workspaces in it, is unchanged.
    expect(await own.edge.writer.state()).toMatchObject({ projectionId, complete: true });
  });

  test("a Redis restarted from an old snapshot is distrusted until a new projection", async () => {
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
    // At once, even if the follower has not noticed yet: the mark is behind what is known.
    const wentBack = { usable: false, reason: "the store has gone back in time" };
    expect(await own.edge.source.read([own.ws.refs.key])).toEqual(wentBack);
    await waitFor("the feed to notice", () => projection.sourceState().usable === false);
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "unusable" });

    // Later entries raise the head past the known one. The record is still that of the snapshot, and still distrusted.
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

  test("a projection that is opened while Redis is unreachable starts when it is back", async () => {
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

  test("tombstones of keys expire after a day, those of referred records are kept until nothing refers to them", async () => {
    const { key, role } = own.ws.refs;
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 9,
      writes: [key, role].map((ref) => ({ ref, data: undefined })),
    });
    const dayMs = 24 * 60 * 60 * 1000;
    const leftMs = await own.raw.pttl(own.keys.record(key).key);
    expect(leftMs).toBeGreaterThan(dayMs - 60_000);
    expect(leftMs).toBeLessThanOrEqual(dayMs);
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

  test("tombstones of overrides are removed when a day has passed and something else is written", async () => {
    const override = (identifier: string) => own.ws.ref("override", `rlns_1/${identifier}`);
    const { key, field } = own.keys.record(override("old"));
    const tombstones = ["old", "young"].map((identifier) => ({ ref: override(identifier), data: undefined }));
    await own.edge.writer.write({ projectionId: own.projectionId, version: 9, writes: tombstones });
    await own.raw.zadd(own.keys.overridesGone(key), Date.now() - 1, field ?? "");
    await own.edge.writer.write({
      projectionId: own.projectionId,
      version: 10,
      writes: [{ ref: override("new"), data: { any: 1 } }],
    });
    expect((await own.raw.hkeys(key)).sort()).toEqual(["=new", "=young"]);
    expect(await own.raw.zrange(own.keys.overridesGone(key), "0", "-1")).toEqual(["=young"]);
  });
});
