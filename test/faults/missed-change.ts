import { hashKey } from "../../core/keys/key-string.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openLine } from "./line.ts";
import type { System } from "./system.ts";

/**
 * A gate admits a key and is then disconnected from Redis by `line`. The key is disabled in the meantime; Redis has that change since about
 * `disabledAt` (`performance.now()`), the gate does not.
 */
export async function missChange(system: System) {
  const api = await system.api();
  const { apiId, keyId, key } = await makeKey(api);
  const line = system.closing(await openLine(system.redisUrl));
  const gate = await system.gate(api, { apiId, redisUrl: line.url });
  await waitFor("the gate to let it in", async () => (await gate.status(key)) === 200);
  const workspaceId = await system.workspaceId();
  line.cut();
  await api.data("keys.updateKey", { keyId, enabled: false });
  const disabledAt = performance.now();
  const ref = { workspaceId, kind: "key", id: hashKey(key) } as const;
  await waitFor("the change to be projected", async () => {
    const batch = await api.edge.source.read([ref]);
    return batch.usable && JSON.stringify(batch.records).includes('"enabled":false');
  });
  return { api, gate, line, key, workspaceId, disabledAt };
}
