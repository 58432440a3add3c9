import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Edge } from "../../../edge/open.ts";
import { ProjectionChanged } from "../../../edge/projection/contract.ts";
import { overrideRecordId, type RecordRef } from "../../../edge/records.ts";
import { waitFor } from "../../harness/wait.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";
import { aWorkspace } from "./projected.ts";
import { Recording } from "./recording.ts";

describe.each(EDGES)("the projection store $name", ({ open }) => {
  let opened: OpenedEdge;
  let edge: Edge;
  let projectionId: string;
  let ws: ReturnType<typeof aWorkspace>;

  beforeAll(async () => {
    opened = await open();
    edge = opened.edge;
  });
  afterAll(() => opened.close());
  beforeEach(async () => {
    projectionId = aName("prj");
    ws = aWorkspace();
    await edge.writer.begin(projectionId, [ws.workspaceId]);
  });

  const complete = () => edge.writer.complete(projectionId, [ws.workspaceId]);
  const write = (version: number, writes = ws.writes) => edge.writer.write({ projectionId, version, writes });
  const readOne = async (ref: RecordRef) => {
    const batch = await edge.source.read([ref]);
    return batch.usable ? batch.records[0] : batch.reason;
  };
  /** Resolves when every earlier write has been reported to the listener. */
  const heardAll = async (listener: Recording, workspaceIds = [ws.workspaceId]) => {
    const asOfMs = Math.floor(Math.random() * 1e12);
    await edge.writer.heartbeat(projectionId, asOfMs, workspaceIds);
    await waitFor("the heartbeat", () => listener.told.includes(`heartbeat ${asOfMs}`));
    listener.told.splice(listener.told.indexOf(`heartbeat ${asOfMs}`), 1);
  };

  test("missing record is unknown until the projection is complete", async () => {
    await write(1);
    expect(await edge.source.read([ws.ref("key", "none")])).toMatchObject({ usable: false });
    expect(await edge.source.read([ws.refs.key, ws.ref("key", "none")])).toMatchObject({ usable: false });
    expect(await readOne(ws.refs.key)).toMatchObject({ state: "found", version: 1, data: ws.key });
    await complete();
    expect(await readOne(ws.ref("key", "none"))).toEqual({ state: "missing" });
  });

  test("projection store returns records in request order", async () => {
    await write(3);
    await complete();
    const { key, role, workspace } = ws.refs;
    const batch = await edge.source.read([role, ws.ref("role", "none"), key, workspace]);
    expect(batch.usable && batch.records.map(({ state }) => state)).toEqual(["found", "missing", "found", "found"]);
    expect(batch.usable && batch.records[0]).toMatchObject({ data: ws.role });
  });

  test("projection store never replaces a newer version and accepts an equal one", async () => {
    await write(7);
    await write(5, [{ ref: ws.refs.key, data: { ...ws.key, enabled: false } }]);
    expect(await readOne(ws.refs.key)).toMatchObject({ state: "found", version: 7, data: ws.key });
    await write(7, [{ ref: ws.refs.key, data: { ...ws.key, name: "again" } }]);
    expect(await readOne(ws.refs.key)).toMatchObject({ version: 7, data: { name: "again" } });
  });

  test("projection store compares versions numerically", async () => {
    await write(9);
    await write(10, [{ ref: ws.refs.key, data: { ...ws.key, name: "ten" } }]);
    expect(await readOne(ws.refs.key)).toMatchObject({ version: 10, data: { name: "ten" } });
  });

  test("tombstone prevents a slow relay from restoring a record", async () => {
    await write(1);
    await write(5, [{ ref: ws.refs.key, data: undefined }]);
    expect(await readOne(ws.refs.key)).toEqual({ state: "gone" });
    await write(4, [{ ref: ws.refs.key, data: ws.key }]);
    expect(await readOne(ws.refs.key)).toEqual({ state: "gone" });
    await write(6, [{ ref: ws.refs.key, data: ws.key }]);
    expect(await readOne(ws.refs.key)).toMatchObject({ state: "found", version: 6 });
  });

  test("overrides are stored separately, and patterns never collide with identifiers", async () => {
    const namespaceId = aName("rlns");
    const override = (identifier: string) => ws.ref("override", overrideRecordId(namespaceId, identifier));
    const patterns = ws.ref("overridePatterns", namespaceId);
    const identifiers = ["alice", "*", "a/b", ""];
    await write(2, [
      ...identifiers.map((identifier) => ({ ref: override(identifier), data: { identifier } })),
      { ref: patterns, data: { patterns: [] } },
    ]);
    await complete();
    for (const identifier of identifiers) {
      expect(await readOne(override(identifier))).toMatchObject({ state: "found", data: { identifier } });
    }
    expect(await readOne(patterns)).toMatchObject({ data: { patterns: [] } });
    await write(3, [{ ref: override("alice"), data: undefined }]);
    await write(2, [{ ref: override("alice"), data: { identifier: "alice" } }]);
    expect(await readOne(override("alice"))).toEqual({ state: "gone" });
    expect(await readOne(override("bob"))).toEqual({ state: "missing" });
    expect(await readOne(override("*"))).toMatchObject({ state: "found" });
  });

  test("new projection starts incomplete and without the records of the previous projection", async () => {
    await write(9);
    await complete();
    const before = projectionId;
    projectionId = aName("prj");
    await edge.writer.begin(projectionId, [ws.workspaceId]);
    expect(await edge.source.read([ws.refs.key])).toMatchObject({ usable: false });
    await write(1, [{ ref: ws.refs.role, data: ws.role }]);
    expect(await readOne(ws.refs.role)).toMatchObject({ state: "found", version: 1 });
    await complete();
    expect(await readOne(ws.refs.key)).toEqual({ state: "missing" });
    const late = { projectionId: before, version: 10, writes: ws.writes };
    await expect(edge.writer.write(late)).rejects.toBeInstanceOf(ProjectionChanged);
    await expect(edge.writer.heartbeat(before, 1, [ws.workspaceId])).rejects.toBeInstanceOf(ProjectionChanged);
    await expect(edge.writer.complete(before, [ws.workspaceId])).rejects.toBeInstanceOf(ProjectionChanged);
    expect(await readOne(ws.refs.key)).toEqual({ state: "missing" });
  });

  test("starting the same projection again changes nothing", async () => {
    await write(2);
    await complete();
    await edge.writer.begin(projectionId, [ws.workspaceId]);
    expect(await readOne(ws.ref("key", "none"))).toEqual({ state: "missing" });
    expect(await edge.writer.state()).toMatchObject({ projectionId, complete: true });
  });

  test("state() reports the progress of the projection", async () => {
    expect(await edge.writer.state()).toMatchObject({ projectionId, complete: false, head: 0, version: 0 });
    await write(41);
    const written = await edge.writer.state();
    expect(written).toMatchObject({ projectionId, complete: false, head: ws.writes.length, version: 41 });
    await edge.writer.heartbeat(projectionId, 5, [ws.workspaceId]);
    await complete();
    const state = await edge.writer.state();
    expect(state).toMatchObject({ complete: true, head: ws.writes.length + 1, version: 41, runId: written.runId });
  });

  test("workspace created after begin() is complete as soon as the projection is complete", async () => {
    await complete();
    const later = aWorkspace();
    await write(3, later.writes);
    expect(await readOne(later.refs.key)).toMatchObject({ state: "found" });
    expect(await readOne(later.ref("key", "none"))).toEqual({ state: "missing" });
    const empty = aWorkspace();
    await edge.writer.heartbeat(projectionId, 5, [ws.workspaceId, empty.workspaceId]);
    expect(await readOne(empty.refs.key)).toEqual({ state: "missing" });
  });

  test("workspace without a projection is unusable", async () => {
    expect(await edge.source.read([aWorkspace().refs.key])).toMatchObject({ usable: false });
  });

  test("workspace and global change streams report changes in order, once the changed records are readable", async () => {
    const other = aWorkspace();
    const own = new Recording();
    const central = new Recording();
    const following = [
      await edge.stream.follow({ workspaceId: ws.workspaceId }, own),
      await edge.stream.follow("central", central),
    ];
    const rootKey = ws.ref("rootKey", "root-hash");
    const name = ws.ref("namespaceName", "public");
    await write(1, [...ws.writes.slice(0, 2), { ref: rootKey, data: { any: 1 } }, { ref: name, data: undefined }]);
    await write(2, other.writes.slice(0, 1));
    await write(3, [{ ref: ws.refs.key, data: undefined }]);
    await heardAll(own);
    await heardAll(central);
    const texts = (refs: RecordRef[]) => refs.map((ref) => `${ref.kind} ${ref.workspaceId} ${ref.id}`);
    const { workspace, api, key } = ws.refs;
    expect(own.told.filter((text) => !text.startsWith("heartbeat"))).toEqual(texts([workspace, api, name, key]));
    expect(central.told.filter((text) => !text.startsWith("heartbeat"))).toEqual(
      texts([workspace, api, rootKey, name, other.refs.workspace, key]),
    );
    expect(await edge.source.read([rootKey])).toMatchObject({ usable: false });
    await Promise.all(following.map((each) => each.close()));
  });

  test("change listener is reset by a new projection, and is not called after it is closed", async () => {
    const listener = new Recording();
    const following = await edge.stream.follow({ workspaceId: ws.workspaceId }, listener);
    projectionId = aName("prj");
    await edge.writer.begin(projectionId, [ws.workspaceId]);
    await write(1, ws.writes.slice(0, 1));
    await heardAll(listener);
    expect(listener.told).toEqual(["reset: another projection", `workspace ${ws.workspaceId} ${ws.workspaceId}`]);
    await following.close();
    await write(2);
    await edge.writer.heartbeat(projectionId, 77, [ws.workspaceId]);
    expect(listener.told).toHaveLength(2);
  });

  test("new change listener gets the last heartbeat time immediately", async () => {
    await edge.writer.heartbeat(projectionId, 4711, [ws.workspaceId]);
    const listener = new Recording();
    const following = await edge.stream.follow({ workspaceId: ws.workspaceId }, listener);
    expect(listener.told).toEqual(["heartbeat 4711"]);
    await following.close();
  });

  test("global heartbeat lists lagging workspaces, each with the time up to which its changes are delivered", async () => {
    const [late, prompt] = [ws, aWorkspace()];
    const listeners = { central: new Recording(), late: new Recording(), prompt: new Recording() };
    const following = [
      await edge.stream.follow("central", listeners.central),
      await edge.stream.follow({ workspaceId: late.workspaceId }, listeners.late),
      await edge.stream.follow({ workspaceId: prompt.workspaceId }, listeners.prompt),
    ];
    const lagging = new Map([
      [late.workspaceId, 3_000],
      ["ws_elsewhere", 0],
    ]);
    await edge.writer.heartbeat(projectionId, 5_000, [late.workspaceId, prompt.workspaceId], lagging);
    const last = (listener: Recording) => () => listener.told.at(-1)?.startsWith("heartbeat");
    for (const listener of Object.values(listeners)) await waitFor("the heartbeat", last(listener));
    expect(listeners.central.told.at(-1)).toBe(`heartbeat 5000 ${late.workspaceId}=3000 ws_elsewhere=0`);
    expect([listeners.late.told.at(-1), listeners.prompt.told.at(-1)]).toEqual(["heartbeat 3000", "heartbeat 5000"]);
    await Promise.all(following.map((each) => each.close()));
  });

  test("estimated Redis time is available and not behind the Redis clock", async () => {
    const following = await edge.stream.follow("central", new Recording());
    const before = await edge.writer.nowMs();
    const told = edge.stream.storeNowMs() ?? 0;
    expect(told).toBeGreaterThanOrEqual(before - 1);
    expect(told - before).toBeLessThan(5_000);
    await following.close();
  });
});
