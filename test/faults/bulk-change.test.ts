import { expect, test } from "vitest";
import { insertKeys, keyRow } from "../harness/rows.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { makeWorkspace, openSystem } from "./system.ts";

/* One workspace makes a very large change. Other workspaces and its own small changes are not delayed. */

const KEYS = 10_000;

test("bulk change in one workspace delays no revocation", async () => {
  const system = await openSystem();
  const api = await system.api();
  const mine = await makeKey(api);
  const { workspaceId, rootKey } = await makeWorkspace(system, "ws_bulk");
  const { apiId } = await api.data("apis.createApi", { name: "bulk" }, rootKey);
  const own = await api.data("keys.createKey", { apiId }, rootKey);
  await insertKeys(system.db, { workspaceId, apiId }, { to: KEYS });
  const depth = async () => {
    const { rows } = await system.db.query<{ depth: number }>("select count(*) as depth from outbox");
    return rows[0]?.depth ?? 0;
  };
  await waitFor("the keys to be projected", async () => (await depth()) === 0, { deadlineMs: 120_000 });
  const [gate, bulkGate] = [
    await system.gate(api, { apiId: mine.apiId }),
    await system.gate(api, { apiId, workspaceId, rootKey }),
  ];
  await waitFor("both keys to be let through", async () => {
    return (await gate.status(mine.key)) === 200 && (await bulkGate.status(own.key)) === 200;
  });

  await system.db.query("update keys set name = 'renamed' where workspace_id = $1", [workspaceId]);
  const committedAtMs = await api.edge.writer.nowMs();
  expect(await depth()).toBeGreaterThan(KEYS / 2);
  await api.data("keys.updateKey", { keyId: mine.keyId, enabled: false });
  await api.data("keys.updateKey", { keyId: own.keyId, enabled: false }, rootKey);
  await waitFor(
    "the sidecars to refuse",
    async () => {
      return (await gate.status(mine.key)) === 401 && (await bulkGate.status(own.key)) === 401;
    },
    { everyMs: 5, deadlineMs: 30_000 },
  );
  expect(await depth(), "the bulk change was over too soon to tell anything").toBeGreaterThan(0);

  // The heartbeats of that workspace only lag until the complete change has arrived.
  const last = keyRow({ workspaceId, apiId }, KEYS - 1).ref;
  const isRenamed = async () => {
    const read = await api.edge.source.read([last]);
    const [record] = read.usable ? read.records : [];
    return record?.state === "found" && (record.data as { name?: string }).name === "renamed";
  };
  await waitFor(
    "the bulk change to have arrived",
    async () => {
      const nowMs = await api.edge.writer.nowMs();
      const behindMs = await bulkGate.stalenessMs();
      // A gate that reports all changes up to a time after the commit must be right.
      if (behindMs !== null && nowMs - behindMs > committedAtMs) expect(await isRenamed()).toBe(true);
      return (await depth()) === 0 && (await isRenamed());
    },
    { everyMs: 20, deadlineMs: 120_000 },
  );
  await waitFor("its heartbeats to have caught up", async () => {
    const behindMs = await bulkGate.stalenessMs();
    return behindMs !== null && (await api.edge.writer.nowMs()) - behindMs > committedAtMs;
  });
});
