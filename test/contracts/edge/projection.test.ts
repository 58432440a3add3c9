import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Edge } from "../../../edge/open.ts";
import type { Projection, RecordWrite } from "../../../edge/projection/contract.ts";
import { openProjection, type ProjectionLimits } from "../../../edge/projection/projection.ts";
import { overrideRecordId, type RecordRef } from "../../../edge/records.ts";
import { cachedKey } from "../../harness/cached-key.ts";
import { waitFor } from "../../harness/wait.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";
import { aWorkspace } from "./projected.ts";
import { GatedSource } from "./recording.ts";

describe.each(EDGES)("the cached projection $name", ({ open }) => {
  let opened: OpenedEdge;
  let edge: Edge;
  let projectionId: string;
  let ws: ReturnType<typeof aWorkspace>;
  let source: GatedSource;
  let projection: Projection;
  let version = 0;

  beforeAll(async () => {
    opened = await open();
    edge = opened.edge;
  });
  afterAll(() => opened.close());
  beforeEach(async () => {
    projectionId = aName("prj");
    ws = aWorkspace();
    await edge.writer.begin(projectionId, [ws.workspaceId]);
    await write(ws.writes);
    await edge.writer.complete(projectionId, [ws.workspaceId]);
    await beat();
    await follow();
  });
  afterEach(() => projection.close());

  const follow = async (limits: ProjectionLimits = {}) => {
    await projection?.close();
    source = new GatedSource(edge.source);
    projection = await openProjection({ source, stream: edge.stream, follow: { workspaceId: ws.workspaceId }, limits });
  };
  const beat = async () => edge.writer.heartbeat(projectionId, await edge.writer.nowMs(), [ws.workspaceId]);
  const write = (writes: RecordWrite[]) => edge.writer.write({ projectionId, version: ++version, writes });
  /** Writes a record and waits until the projection is notified. */
  const change = async (ref: RecordRef, data: unknown) => {
    const told = new Promise<void>((resolve) => {
      projection.onDropped((dropped) => {
        if (dropped?.kind === ref.kind && dropped.id === ref.id) resolve();
      });
    });
    await write([{ ref, data }]);
    await told;
  };
  const find = () => projection.findKey(ws.workspaceId, ws.hash);
  const peek = () => cachedKey(projection, ws.workspaceId, ws.hash);

  test("cached projection returns a key with the records it refers to, and caches them", async () => {
    expect(peek()).toBeUndefined();
    const found = await find();
    expect(found).toMatchObject({
      status: "found",
      value: {
        key: { keyId: ws.keyId },
        workspace: { enabled: true },
        api: { name: "orders" },
        identity: { externalId: "alice" },
        roles: ["editor"],
        permissions: ["orders.read", "orders.write"],
      },
    });
    const { reads } = source;
    expect(peek()).toBe(found.status === "found" && found.value);
    await find();
    expect(source.reads).toBe(reads);
    expect(cachedKey(projection, "ws_other", ws.hash)).toBeUndefined();
  });

  test("cached projection reads once for 100 concurrent lookups", async () => {
    await Promise.all(Array.from({ length: 100 }, find));
    expect(source.reads).toBe(2);
  });

  test.each([
    {
      name: "the key",
      ref: () => ws.refs.key,
      data: () => ({ ...ws.key, name: "new" }),
      view: { key: { name: "new" } },
    },
    {
      name: "a role of it",
      ref: () => ws.refs.role,
      data: () => ({ ...ws.role, permissions: ["orders.admin"] }),
      view: { permissions: ["orders.admin", "orders.read"] },
    },
    {
      name: "its workspace",
      ref: () => ws.refs.workspace,
      data: () => ({ id: ws.workspaceId, enabled: false }),
      view: { workspace: { enabled: false } },
    },
    {
      name: "its identity, which is gone",
      ref: () => ws.refs.identity,
      data: () => undefined,
      view: { identity: undefined },
    },
    { name: "its API, which is gone", ref: () => ws.refs.api, data: () => undefined, view: { api: undefined } },
    { name: "its role, which is gone", ref: () => ws.refs.role, data: () => undefined, view: { roles: [] } },
  ])("reported change of $name takes effect immediately", async ({ ref, data, view }) => {
    await find();
    await change(ref(), data());
    expect(peek()).toBeUndefined();
    expect(await find()).toMatchObject({ status: "found", value: view });
    expect(peek()).toMatchObject(view);
  });

  test("deleted key is absent and a new key is found after a change", async () => {
    await find();
    await change(ws.refs.key, undefined);
    expect(await find()).toEqual({ status: "absent" });
    const { reads } = source;
    expect(await find()).toEqual({ status: "absent" });
    expect(source.reads).toBe(reads);
    await change(ws.refs.key, ws.key);
    expect(await find()).toMatchObject({ status: "found" });
  });

  test("key with a missing role is unusable, rather than usable without the role", async () => {
    await write([{ ref: ws.refs.key, data: { ...ws.key, roleIds: ["role_unheard_of"] } }]);
    await follow();
    expect(await find()).toMatchObject({ status: "unusable" });
    expect(peek()).toBeUndefined();
  });

  test("key with an unreadable record is unusable rather than absent", async () => {
    await write([{ ref: ws.refs.key, data: { ...ws.key, enabled: "perhaps" } }]);
    await follow();
    expect(await find()).toMatchObject({ status: "unusable" });
    await write([{ ref: ws.refs.key, data: { ...ws.key, fromTheFuture: true } }]);
    await waitFor("the key to be readable", async () => (await find()).status === "found");
  });

  test("record that is read while it changes is used once and not cached", async () => {
    const release = source.hold();
    const before = find();
    await waitFor("the reading to begin", () => source.responses === 1);
    await change(ws.refs.key, { ...ws.key, name: "new" });
    const after = find();
    release();
    expect(await before).toMatchObject({ value: { key: expect.not.objectContaining({ name: "new" }) } });
    expect(await after).toMatchObject({ value: { key: { name: "new" } } });
    expect(await find()).toMatchObject({ value: { key: { name: "new" } } });
  });

  test("role that is read while it changes is not cached in any key view", async () => {
    const first = await projection.findKey(ws.workspaceId, "warm");
    expect(first.status).toBe("absent");
    const release = source.hold();
    const before = find();
    await waitFor("the reading to begin", () => source.responses === 2);
    release();
    const releaseRoles = source.hold();
    await waitFor("the reading of the role to begin", () => source.responses === 3);
    await change(ws.refs.role, { ...ws.role, permissions: [] });
    releaseRoles();
    await before;
    expect(await find()).toMatchObject({ value: { permissions: ["orders.read"] } });
  });

  test("key that is read as absent while it is created is not cached as absent", async () => {
    await change(ws.refs.key, undefined);
    const release = source.hold();
    const before = find();
    await waitFor("the reading to begin", () => source.responses === 1);
    await change(ws.refs.key, ws.key);
    release();
    expect(await before).toEqual({ status: "absent" });
    expect(await find()).toMatchObject({ status: "found" });
  });

  test("local write invalidates the cache, and a pending read is not cached", async () => {
    await find();
    const release = source.hold();
    projection.drop([ws.refs.key]);
    expect(peek()).toBeUndefined();
    const before = find();
    await waitFor("the reading to begin", () => source.responses === 3);
    projection.drop([ws.refs.key]);
    release();
    await before;
    expect(peek()).toBeUndefined();
  });

  test("keys requested in one turn of the event loop are read in batches of up to 64 keys of one workspace", async () => {
    const other = aWorkspace();
    await edge.writer.begin(projectionId, [other.workspaceId]);
    await write(other.writes);
    await edge.writer.complete(projectionId, [other.workspaceId]);
    const unknown = Array.from({ length: 99 }, (_, n) => projection.findKey(ws.workspaceId, `unknown-${n}`));
    const [known, ofOther, ...absent] = await Promise.all([
      find(),
      projection.findKey(other.workspaceId, other.hash),
      ...unknown,
    ]);
    expect(known).toMatchObject({ status: "found", value: { key: { keyId: ws.keyId } } });
    expect(ofOther).toMatchObject({ status: "found", value: { key: { keyId: other.keyId } } });
    expect(absent).toEqual(absent.map(() => ({ status: "absent" })));
    const keyReads = source.refs.filter(([ref]) => ref?.kind === "key");
    expect(keyReads.map((refs) => refs.length)).toEqual([64, 36, 1]);
    for (const refs of source.refs) expect(new Set(refs.map(({ workspaceId }) => workspaceId)).size).toBe(1);
  });

  test("change between a request and the read of its batch is not lost", async () => {
    const before = find();
    expect(source.reads).toBe(0);
    projection.drop([ws.refs.key]);
    expect(await before).toMatchObject({ status: "found" });
    expect(peek()).toBeUndefined();
  });

  test("key is found even if its batch has a missing key while the projection is incomplete", async () => {
    const next = aWorkspace();
    await edge.writer.begin(projectionId, [next.workspaceId]);
    await write(next.writes);
    const [known, unknown] = await Promise.all([
      projection.findKey(next.workspaceId, next.hash),
      projection.findKey(next.workspaceId, "unknown"),
    ]);
    expect(source.refs[0]?.length).toBe(2);
    expect(known).toMatchObject({ status: "found", value: { key: { keyId: next.keyId } } });
    expect(unknown).toMatchObject({ status: "unusable" });
  });

  test("unreadable record does not affect other records of its batch", async () => {
    await edge.writer.write({
      projectionId,
      version: ++version,
      writes: [{ ref: { ...ws.refs.key, id: "broken" }, data: { keyId: 7 } }],
    });
    const [known, broken] = await Promise.all([find(), projection.findKey(ws.workspaceId, "broken")]);
    expect(known).toMatchObject({ status: "found" });
    expect(broken).toMatchObject({ status: "unusable" });
  });

  test("forgetAll() discards cached data even while the source is unavailable", async () => {
    await find();
    await projection.findKey(ws.workspaceId, "unknown");
    let told = 0;
    projection.onDropped((ref) => {
      if (ref === undefined) told += 1;
    });
    source.isBroken = true;
    projection.forgetAll();
    expect(told).toBe(1);
    expect(peek()).toBeUndefined();
    expect(await find()).toEqual({ status: "unusable", reason: "broken" });
    expect(await projection.findKey(ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
    expect(projection.cacheSizes()).toEqual({ keys: 0, records: 0, absences: 0 });
    source.isBroken = false;
    expect(await find()).toMatchObject({ status: "found", value: { roles: ["editor"] } });
    expect(peek()).toBeDefined();
  });

  test.each([1, 2])(
    "record is used once and not cached if forgetAll() is called during read %i of its key",
    async (which) => {
      const release = source.hold(which);
      const before = find();
      await waitFor("the reading", () => source.reads === which);
      projection.forgetAll();
      release();
      expect(await before).toMatchObject({ status: "found" });
      source.isBroken = true;
      expect(peek()).toBeUndefined();
      expect(await find()).toEqual({ status: "unusable", reason: "broken" });
    },
  );

  test("new projection reloads all records and serves cached keys as stale until complete", async () => {
    await find();
    await projection.findKey(ws.workspaceId, "unknown");
    const reset = new Promise<void>((resolve) => {
      projection.onDropped((ref) => ref === undefined && resolve());
    });
    projectionId = aName("prj");
    await edge.writer.begin(projectionId, [ws.workspaceId]);
    await reset;
    expect(peek()).toBeUndefined();
    expect(await find()).toMatchObject({ status: "found", stale: true, value: { key: { keyId: ws.keyId } } });
    expect(await projection.findKey(ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
    // The shared records are projected again, the key is not yet.
    await change(ws.refs.workspace, { id: ws.workspaceId, enabled: false });
    expect(await find()).toMatchObject({ status: "found", stale: true, value: { workspace: { enabled: false } } });
    await write(ws.writes);
    await edge.writer.complete(projectionId, [ws.workspaceId]);
    await waitFor("the key to be fresh", async () => (await find()).status === "found" && peek() !== undefined);
    expect(await find()).not.toHaveProperty("stale");
    expect(await projection.findKey(ws.workspaceId, "unknown")).toEqual({ status: "absent" });
  });

  test("unavailable source keeps cached keys valid and returns nothing for others", async () => {
    await find();
    source.isBroken = true;
    expect(await find()).toMatchObject({ status: "found" });
    expect(await projection.findKey(ws.workspaceId, "unknown")).toEqual({ status: "unusable", reason: "broken" });
    await change(ws.refs.key, { ...ws.key, enabled: false });
    expect(await find()).toEqual({ status: "unusable", reason: "broken" });
  });

  test("cached absence of a key is ignored when the change stream lags", async () => {
    await follow({ negativeStalenessMs: 0 });
    await projection.findKey(ws.workspaceId, "unknown");
    await waitFor("some staleness", () => projection.stalenessMs() > 0);
    const { reads } = source;
    await projection.findKey(ws.workspaceId, "unknown");
    expect(source.reads).toBe(reads + 1);
    source.isBroken = true;
    expect(await projection.findKey(ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
  });

  test("cache beyond its staleness bound is used only when the source is unreachable", async () => {
    await follow({ bypassAfterMs: 0 });
    await find();
    await waitFor("some staleness", () => projection.stalenessMs() > 0);
    const { reads } = source;
    const found = find();
    expect(found).toBeInstanceOf(Promise);
    expect(await found).not.toHaveProperty("stale");
    expect(source.reads).toBe(reads + 2);
    source.isBroken = true;
    expect(await find()).toMatchObject({ status: "found", stale: true });
  });

  test("staleness is the age of the last received heartbeat", async () => {
    const asOfMs = await edge.writer.nowMs();
    await edge.writer.heartbeat(projectionId, asOfMs - 5_000, [ws.workspaceId]);
    await edge.writer.heartbeat(projectionId, asOfMs, [ws.workspaceId]);
    await waitFor("the heartbeat", () => projection.stalenessMs() < 4_000);
    const nowMs = await edge.writer.nowMs();
    expect(projection.stalenessMs()).toBeGreaterThanOrEqual(nowMs - asOfMs - 1);
  });

  test("heartbeat from the future is rejected and counted", async () => {
    const asOfMs = await edge.writer.nowMs();
    await edge.writer.heartbeat(projectionId, asOfMs + 3_600_000, [ws.workspaceId]);
    await waitFor("the refusal", () => projection.refused().heartbeat === 1);
    await waitFor("some staleness", () => projection.stalenessMs() > 0);
    await edge.writer.heartbeat(projectionId, asOfMs, [ws.workspaceId]);
    const laterMs = 60;
    await waitFor("its age", () => projection.stalenessMs() > laterMs);
  });

  test("override for an exact identifier takes precedence over the best matching pattern", async () => {
    const namespaceId = aName("rlns");
    const anOverride = (identifier: string, limit: number) => ({
      id: `rlor_${limit}`,
      identifier,
      limit,
      durationMs: 60_000,
      async: false,
    });
    const exact = ws.ref("override", overrideRecordId(namespaceId, "premium_1"));
    const patterns = ws.ref("overridePatterns", namespaceId);
    const limitOf = async (identifier: string) => {
      const found = await projection.findOverride(ws.workspaceId, namespaceId, identifier);
      return found.status === "found" ? found.value.limit : found.status;
    };
    expect(await limitOf("premium_1")).toBe("absent");
    await change(exact, anOverride("premium_1", 1));
    await change(patterns, { patterns: [anOverride("premium_*", 2), anOverride("*", 3)] });
    expect([await limitOf("premium_1"), await limitOf("premium_2"), await limitOf("x")]).toEqual([1, 2, 3]);
    await change(exact, undefined);
    expect(await limitOf("premium_1")).toBe(2);
    await change(patterns, undefined);
    expect(await limitOf("premium_1")).toBe("absent");
  });

  test("cached override, and the cached absence of one, are returned synchronously until they change", async () => {
    const namespaceId = aName("rlns");
    const find = () => projection.findOverride(ws.workspaceId, namespaceId, "premium_1");
    const override = { id: "rlor_1", identifier: "premium_1", limit: 1, durationMs: 60_000, async: false };
    const exact = ws.ref("override", overrideRecordId(namespaceId, "premium_1"));
    expect(find()).toBeInstanceOf(Promise);
    await change(ws.ref("overridePatterns", namespaceId), { patterns: [{ ...override, identifier: "*", limit: 2 }] });
    await find();
    expect(find()).toMatchObject({ status: "found", value: { limit: 2 } });
    await change(exact, override);
    expect(find()).toBeInstanceOf(Promise);
    expect(await find()).toMatchObject({ value: { limit: 1 } });
    expect(find()).toMatchObject({ status: "found", value: { limit: 1 } });
    await change(exact, undefined);
    await find();
    expect(find()).toMatchObject({ status: "found", value: { limit: 2 } });
  });

  test("namespaces are found by id and name, and policies by id", async () => {
    const namespaceId = aName("rlns");
    await change(ws.ref("namespace", namespaceId), { id: namespaceId, name: "public", deleted: false });
    expect(await projection.findNamespace(ws.workspaceId, namespaceId)).toMatchObject({ value: { name: "public" } });
    expect(await projection.findPolicy(ws.workspaceId, "pol_none")).toEqual({ status: "absent" });
    const name = "{a} public} name/*";
    expect(await projection.findNamespaceByName(ws.workspaceId, name)).toEqual({ status: "absent" });
    await change(ws.ref("namespaceName", name), { id: namespaceId, name, deleted: false });
    expect(await projection.findNamespaceByName(ws.workspaceId, name)).toMatchObject({ value: { id: namespaceId } });
    await change(ws.ref("namespaceName", name), undefined);
    expect(await projection.findNamespaceByName(ws.workspaceId, name)).toEqual({ status: "absent" });
  });

  test("keys whose hashes have the same number are never confused", async () => {
    // With the base 31, "Aa" and "BB" have the same number.
    const hashes = ["AaAa", "BBBB", "AaBB"].map((end) => `${aName("hash")}${end}AaAa`);
    await write(hashes.map((hash) => ({ ref: ws.ref("key", hash), data: { ...ws.key, name: hash } })));
    for (const hash of [...hashes, ...hashes]) {
      expect(await projection.findKey(ws.workspaceId, hash)).toMatchObject({ value: { key: { name: hash } } });
    }
    const [first = "", second = "", third = ""] = hashes;
    expect(cachedKey(projection, ws.workspaceId, first)).toBeUndefined();
    expect(cachedKey(projection, ws.workspaceId, third)).toMatchObject({ key: { name: third } });
    await change(ws.ref("key", second), { ...ws.key, name: "changed" });
    expect(await projection.findKey(ws.workspaceId, second)).toMatchObject({ value: { key: { name: "changed" } } });
    await change(ws.ref("key", second), undefined);
    expect(await projection.findKey(ws.workspaceId, second)).toEqual({ status: "absent" });
    expect(await projection.findKey(ws.workspaceId, first)).toMatchObject({ value: { key: { name: first } } });
  });

  test("cache stays within its limit and reloads evicted records", async () => {
    await follow({ views: 2, records: 6, absences: 2 });
    const hashes = Array.from({ length: 8 }, () => aName("hash"));
    await write(hashes.map((hash) => ({ ref: ws.ref("key", hash), data: { ...ws.key, name: hash } })));
    for (let round = 0; round < 2; round++) {
      for (const hash of hashes) {
        expect(await projection.findKey(ws.workspaceId, hash)).toMatchObject({ value: { key: { name: hash } } });
      }
    }
    expect(
      hashes.filter((hash) => cachedKey(projection, ws.workspaceId, hash) !== undefined).length,
    ).toBeLessThanOrEqual(2);
  });
});
