import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Edge } from "../../../edge/open.ts";
import { openProjection } from "../../../edge/projection/projection.ts";
import type { RecordRef } from "../../../edge/records.ts";
import { GLOBAL, RedisKeys } from "../../../edge/redis/keys.ts";
import { type OwnRedis, startOwnRedis } from "../../harness/redis.ts";
import { aName, type OpenedEdge, openOn } from "./edges.ts";
import { aWorkspace } from "./projected.ts";

/** While a projection is incomplete, records of the previous projection named in its state may be used. */
describe.each([{ cluster: false }, { cluster: true }])(
  "new projection after a previous projection (cluster: $cluster)",
  ({ cluster }) => {
    const keys = new RedisKeys();
    let redis: OwnRedis;
    let raw: Redis;
    let opened: OpenedEdge;
    let edge: Edge;
    let ws: ReturnType<typeof aWorkspace>;
    let [previousId, projectionId] = ["", ""];

    beforeAll(async () => {
      redis = await startOwnRedis({ cluster, args: cluster ? ["--cluster-announce-ip", "127.0.0.1"] : [] });
      opened = await openOn(`${redis.url}${cluster ? "?cluster=true" : ""}`, "ps", redis.stop);
      edge = opened.edge;
      raw = new Redis(redis.url);
    });
    afterAll(async () => {
      raw.disconnect();
      await opened.close();
    });

    const state = async (ref: RecordRef) => {
      const batch = await edge.source.read([ref]);
      return batch.usable ? batch.records[0]?.state : `not usable: ${batch.reason}`;
    };
    const INCOMPLETE = "not usable: the projection is not complete yet";

    /** Creates a projection with a deleted role, and a second one in which only the API is written. */
    beforeEach(async () => {
      ws = aWorkspace();
      [previousId, projectionId] = [aName("prj_z"), aName("prj_a")];
      await edge.writer.begin(previousId, [ws.workspaceId]);
      const writes = ws.writes.map((write) => (write.ref.kind === "role" ? { ...write, data: undefined } : write));
      await edge.writer.write({ projectionId: previousId, version: 9, writes });
      await edge.writer.complete(previousId, [ws.workspaceId]);
      await edge.writer.begin(projectionId, [ws.workspaceId]);
      const api = { ref: ws.refs.api, data: { id: ws.apiId, name: "anew" } };
      await edge.writer.write({ projectionId, version: 2, writes: [api] });
    });
    const allow = (id: string) => raw.hset(keys.projectionState(ws.workspaceId), "previousId", id);

    test("new projection ignores records of the previous projection until it is allowed to use them", async () => {
      expect(await state(ws.refs.key)).toBe(INCOMPLETE);
      await allow(aName("prj_other"));
      expect(await state(ws.refs.key)).toBe(INCOMPLETE);
    });

    test("new projection falls back to live and deleted records of the previous projection", async () => {
      await allow(previousId);
      expect([await state(ws.refs.key), await state(ws.refs.role)]).toEqual(["found", "gone"]);
      const { key, role, api } = ws.refs;
      expect(await edge.source.read([key, role, api])).toMatchObject({
        usable: true,
        records: [{ data: { keyId: ws.keyId } }, { state: "gone" }, { data: { name: "anew" } }],
      });
      expect(await state(ws.ref("key", "unknown"))).toBe(INCOMPLETE);
      expect(await edge.source.read([key, ws.ref("role", "unknown")])).toMatchObject({
        usable: false,
        partial: [{ state: "found" }, { state: "missing" }],
      });
    });

    test("new projection serves uncached keys from the previous one as fresh", async () => {
      await allow(previousId);
      await edge.writer.write({
        projectionId,
        version: 3,
        writes: [{ ref: ws.refs.workspace, data: { id: ws.workspaceId, enabled: true } }],
      });
      const { source, stream } = edge;
      const projection = await openProjection({ source, stream, follow: { workspaceId: ws.workspaceId } });
      const found = await projection.findKey(ws.workspaceId, ws.hash);
      expect(found).toMatchObject({ status: "found", value: { api: { name: "anew" }, roles: [] } });
      expect(found).not.toHaveProperty("stale");
      expect(await projection.findKey(ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
      await projection.close();
    });

    test("new projection permits the fallback once a heartbeat no longer lists the workspace as lagging", async () => {
      const [completed, later, last] = [previousId, aName("prj_b"), aName("prj_c")];
      const beat = async (id: string, lagging = new Map<string, number>()) =>
        edge.writer.heartbeat(id, await edge.writer.nowMs(), [ws.workspaceId], lagging);
      await edge.writer.begin(completed, [ws.workspaceId]);
      await edge.writer.write({ projectionId: completed, version: 10, writes: ws.writes });
      await edge.writer.complete(completed, [ws.workspaceId]);
      await edge.writer.begin(later, [ws.workspaceId], { usePrevious: true });
      expect(await state(ws.refs.key)).toBe(INCOMPLETE);
      await beat(later, new Map([[ws.workspaceId, 0]]));
      expect(await state(ws.refs.key)).toBe(INCOMPLETE);
      await beat(later);
      // The nodes of a cluster may be rolled back separately.
      expect(await state(ws.refs.key)).toBe(cluster ? INCOMPLETE : "found");
      // A projection that was never complete cannot serve as the previous one.
      await edge.writer.begin(last, [ws.workspaceId], { usePrevious: true });
      await beat(last);
      expect(await state(ws.refs.key)).toBe(INCOMPLETE);
    });

    test("lagging workspace delays the fallback only for itself", async () => {
      const other = aWorkspace();
      const [both, later] = [[ws.workspaceId, other.workspaceId], aName("prj_b")];
      await edge.writer.begin(previousId, both);
      await edge.writer.write({ projectionId: previousId, version: 10, writes: [...ws.writes, ...other.writes] });
      await edge.writer.complete(previousId, both);
      await edge.writer.begin(later, both, { usePrevious: true });
      const lagging = new Map([[ws.workspaceId, 0]]);
      await edge.writer.heartbeat(later, await edge.writer.nowMs(), both, lagging);
      expect([await state(ws.refs.key), await state(other.refs.key)]).toEqual([
        INCOMPLETE,
        cluster ? INCOMPLETE : "found",
      ]);
    });

    test("heartbeat from before a Redis rollback does not make the previous projection fresh", async () => {
      for (let i = 0; i < 3; i++) await edge.writer.heartbeat(projectionId, 1000 + i, [ws.workspaceId]);
      await raw.hset(keys.projectionState(GLOBAL), { head: 1, asOfMs: 500 });
      await expect(edge.writer.heartbeat(projectionId, 2000, [ws.workspaceId])).rejects.toThrow("gone back in time");
      expect((await edge.writer.state()).asOfMs).toBe(500);
    });

    test("previous projection is unused after the new one is complete", async () => {
      await allow(previousId);
      await edge.writer.complete(projectionId, [ws.workspaceId]);
      expect([await state(ws.refs.key), await state(ws.refs.role), await state(ws.refs.api)]).toEqual([
        "missing",
        "missing",
        "found",
      ]);
    });
  },
);
