import { expect, test } from "vitest";
import { RECENT_MAX } from "../../api-server/relay/rebuild.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { waitFor } from "../harness/wait.ts";
import { whileRebuildsWait } from "./held.ts";
import { missChange } from "./missed-change.ts";
import { openSystem, type System } from "./system.ts";

const LOSSES: Readonly<Record<string, (system: System, workspaceId: string) => Promise<unknown>>> = {
  "the whole store": (system) => system.raw.flushall(),
  "one workspace's mark and changes": (system, workspaceId) => {
    const keys = new RedisKeys(system.prefix);
    return system.raw.del(keys.projectionState(workspaceId), keys.changes(workspaceId));
  },
  "the whole store, after more changes than are announced again": async (system) => {
    await system.db.query(
      "insert into recent_changes (workspace_id, kind, id) select 'ws', 'api', 'api_' || i from generate_series(1, $1::integer) i",
      [RECENT_MAX + 1],
    );
    await system.raw.flushall();
  },
};

test.each(Object.entries(LOSSES))(
  "change missed by a pod is not hidden by heartbeats after loss of %s",
  async (_, lose) => {
    const system = await openSystem({ ownRedis: true });
    const { api, gate, line, key, workspaceId, disabledAt } = await missChange(system);
    await whileRebuildsWait(system, async () => {
      await lose(system, workspaceId);
      await waitFor(
        "the next projection to be begun",
        async () => (await api.edge.writer.state()).projectionId !== undefined,
      );
      line.mend();
      await waitFor(
        "the gate to say that it knows everything from before a moment after the change",
        async () => ((await gate.stalenessMs()) ?? Number.POSITIVE_INFINITY) < performance.now() - disabledAt,
        { deadlineMs: 20_000 },
      );
      expect(await gate.status(key)).not.toBe(200);
    });
  },
);
