import { describe, expect, test } from "vitest";
import type { ReadBatch } from "../../../edge/projection/contract.ts";
import { RECORD_BYTES_MAX } from "../../../edge/projection/redis-source.ts";
import type { RecordRef } from "../../../edge/records.ts";
import { waitFor } from "../../harness/wait.ts";
import { useOwnEdge } from "./own-edge.ts";
import { aWorkspace } from "./projected.ts";
import { Recording } from "./recording.ts";

/** The pods of a workspace may write below its prefix, which must not harm other pods of the workspace. */
describe("a projection that is tampered with", () => {
  const own = useOwnEdge();
  const states = (batch: ReadBatch) => (batch.usable ? batch.records.map(({ state }) => state) : batch.reason);
  const sentBytes = async () => Number(/^total_net_output_bytes:(\d+)/m.exec(await own.raw.info("stats"))?.[1]);
  const place = (ref: RecordRef) => own.keys.record(ref).key;
  const override = (identifier: string) => own.ws.ref("override", `rlns_1/${identifier}`);
  const writeOverrides = (...identifiers: string[]) =>
    own.edge.writer.write({
      projectionId: own.projectionId,
      version: 2,
      writes: identifiers.map((identifier) => ({ ref: override(identifier), data: { identifier } })),
    });

  test.each([
    { name: "of the wrong type", put: (key: string) => own.raw.del(key).then(() => own.raw.lpush(key, "x")) },
    { name: "of NULs", put: (key: string) => own.raw.set(key, "\0".repeat(100)) },
    { name: "with NULs in it", put: (key: string) => own.raw.set(key, `${own.projectionId} 1 {"a":"\0"}`) },
    { name: "without a version", put: (key: string) => own.raw.set(key, `${own.projectionId} 1e400 {}`) },
    { name: "that is half of one", put: (key: string) => own.raw.set(key, `${own.projectionId} 1 {"id":`) },
    { name: "of 100 MB", put: (key: string) => own.raw.setrange(key, 100 * 1024 * 1024, "x") },
  ])("tampered record $name affects no other record and is never treated as absent", async ({ put }) => {
    const { key, role, api } = own.ws.refs;
    await put(place(key));
    const before = await sentBytes();
    expect(states(await own.edge.source.read([role, key, api]))).toEqual(["found", "unreadable", "found"]);
    expect((await sentBytes()) - before).toBeLessThan(2 * RECORD_BYTES_MAX);
    const projection = await own.openProjection();
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "unusable" });
    expect(projection.refused().record).toBe(1);
    expect(projection.sourceState()).toEqual({ usable: true });
    await projection.close();
  });

  test("override hash of the wrong type or of 100 MB affects no other record", async () => {
    await writeOverrides("a", "b");
    const key = place(override("a"));
    await own.raw.set("big", "");
    await own.raw.setrange("big", 100 * 1024 * 1024, "x");
    await own.raw.hset(key, "=a", (await own.raw.getBuffer("big")) ?? "");
    const refs = [own.ws.refs.key, override("a"), override("b"), override("none")];
    const before = await sentBytes();
    expect(states(await own.edge.source.read(refs))).toEqual(["found", "unreadable", "found", "missing"]);
    expect((await sentBytes()) - before).toBeLessThan(2 * RECORD_BYTES_MAX);
    await own.raw.del(key, "big");
    await own.raw.set(key, "no hash");
    expect(states(await own.edge.source.read(refs))).toEqual(["found", "unreadable", "unreadable", "unreadable"]);
  });

  test.each([
    { name: "of the wrong type", put: (mark: string) => own.raw.del(mark).then(() => own.raw.set(mark, "x")) },
    { name: "whose head is no number", put: (mark: string) => own.raw.hset(mark, "head", "1e400") },
    { name: "without a head", put: (mark: string) => own.raw.hdel(mark, "head") },
    { name: "whose projection id is none", put: (mark: string) => own.raw.hset(mark, "projectionId", "a b") },
  ])("tampered state $name makes data unusable until it is valid again", async ({ put }) => {
    const projection = await own.openProjection();
    await projection.findKey(own.ws.workspaceId, own.ws.hash);
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    const mark = own.keys.projectionState(own.ws.workspaceId);
    const intact = await own.raw.hgetall(mark);
    await put(mark);
    expect(await own.edge.source.read([own.ws.refs.role])).toMatchObject({ usable: false, refused: "state" });
    expect(await projection.findKey(own.ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
    expect(projection.refused().state).toBe(1);
    expect(projection.sourceState()).toMatchObject({ usable: false });
    expect(await projection.findKey(own.ws.workspaceId, own.ws.hash)).toMatchObject({ status: "found" });
    // A follower reads the state again when it connects.
    await own.raw.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await waitFor("the follower to meet it", () => listener.told.includes("refused state"));
    await own.raw.del(mark);
    await own.raw.hset(mark, intact);
    await own.connected();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${own.ws.workspaceId} ${own.ws.hash}`));
    expect(listener.resets()).toEqual([]);
    await own.beat();
    await waitFor("the source to be usable", () => projection.sourceState().usable);
    await following.close();
    await projection.close();
  });

  test("change stream of the wrong type is reported, and followed again once it is valid", async () => {
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    const stream = own.keys.changes(own.ws.workspaceId);
    await own.raw.rename(stream, "aside");
    await own.raw.set(stream, "no stream");
    await waitFor("word of it", () => listener.told.includes("refused state"));
    await own.raw.rename("aside", stream);
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${own.ws.workspaceId} ${own.ws.hash}`));
    await following.close();
  });

  test.each([
    { name: "no fields of ours", fields: { hello: "world" } },
    { name: "a number that is none", fields: { n: "1e400", k: "key", i: "x" } },
    { name: "a kind that is none", fields: { k: "heart beat", t: "5" } },
    { name: "another projection", fields: { p: "prj_forged", n: "7", k: "key", i: "x" } },
    { name: "NULs", fields: { k: "\0", i: "\0", n: "\0" } },
  ])("stream entry with $name causes at most one reset, and later changes arrive", async ({ fields }) => {
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    const stream = own.keys.changes(own.ws.workspaceId);
    const forged = Object.entries({ p: own.projectionId, ...fields }).flat();
    const pipeline = own.raw.pipeline();
    for (let i = 0; i < 500; i++) pipeline.xadd(stream, "*", ...forged);
    await pipeline.exec();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${own.ws.workspaceId} ${own.ws.hash}`));
    const resets = listener.resets().length;
    expect(resets).toBeGreaterThan(0);
    // One reset per reply with such entries, not one per entry.
    expect(resets).toBeLessThan(50);
    await own.beat();
    await waitFor("a heartbeat", () => listener.told.at(-1)?.startsWith("heartbeat"));
    expect(listener.resets()).toHaveLength(resets);
    await following.close();
  });

  test("stream entry of a kind that only a newer version knows is skipped without a reset", async () => {
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    await own.append(own.ws.workspaceId, { k: "certificate", i: "cert_1" });
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: own.ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${own.ws.workspaceId} ${own.ws.hash}`));
    expect(listener.resets()).toEqual([]);
    await following.close();
  });

  test("rollback of one workspace affects only that workspace, until its next projection", async () => {
    const other = aWorkspace();
    await own.edge.writer.write({ projectionId: own.projectionId, version: 2, writes: other.writes });
    const projection = await own.openProjection();
    await projection.findKey(own.ws.workspaceId, own.ws.hash);
    await own.edge.source.read([other.refs.key]);
    await own.raw.hincrby(own.keys.projectionState(own.ws.workspaceId), "head", -3);
    expect(await projection.findKey(own.ws.workspaceId, "unknown")).toEqual({
      status: "unusable",
      reason: "the store has gone back in time",
    });
    expect(projection.sourceState()).toMatchObject({ usable: false });
    expect(states(await own.edge.source.read([other.refs.key]))).toEqual(["found"]);
    const agedMs = projection.stalenessMs();
    // Written by a relay that does not know its own progress.
    const [mark, stream] = [own.keys.projectionState(own.ws.workspaceId), own.keys.changes(own.ws.workspaceId)];
    const n = await own.raw.hincrby(mark, "head", 1);
    await own.raw.xadd(
      stream,
      "*",
      "p",
      own.projectionId,
      "n",
      n,
      "k",
      "heartbeat",
      "t",
      await own.edge.writer.nowMs(),
    );
    await waitFor("the heartbeat to be refused", () => projection.refused().heartbeat > 0);
    expect(projection.stalenessMs()).toBeGreaterThan(agedMs);
    await own.project();
    await waitFor("the source to be usable", () => projection.sourceState().usable);
    expect(await projection.findKey(own.ws.workspaceId, "unknown")).toEqual({ status: "absent" });
    await projection.close();
  });

  test("reader whose position was trimmed discards its cache", async () => {
    const listener = new Recording();
    const following = await own.edge.stream.follow({ workspaceId: own.ws.workspaceId }, listener);
    const stream = own.keys.changes(own.ws.workspaceId);
    await own.beat();
    await waitFor("a heartbeat", () => listener.told.at(-1)?.startsWith("heartbeat"));
    // One transaction, so that the follower cannot read in between.
    const mark = own.keys.projectionState(own.ws.workspaceId);
    const cut = own.raw.multi();
    for (const n of ["a", "b", "c"]) cut.xadd(stream, "*", "p", own.projectionId, "n", n, "k", "heartbeat", "t", "5");
    cut.xtrim(stream, "MAXLEN", 0).hincrby(mark, "head", 3);
    await cut.exec();
    await own.beat();
    await waitFor("the gap", () => listener.resets().length > 0);
    expect(listener.resets()).toEqual([expect.stringMatching(/^reset: changes \d+ to \d+ were missed$/)]);
    await following.close();
  });
});
