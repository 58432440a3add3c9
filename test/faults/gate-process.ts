import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { aPolicy, call, startApp, withKey } from "../harness/gate.ts";
import type { RunningProcess } from "../harness/process.ts";
import { spawnSidecar } from "../harness/sidecar-process.ts";
import type { Api } from "./client.ts";
import type { System } from "./system.ts";

/** A sidecar in a process of its own, and the app that it guards. */
export interface GateProcess {
  /** The status of a request with this key. */
  status(key: string): Promise<number>;
  readonly process: RunningProcess;
}

/** A sidecar as it runs in a pod, which guards an API with a policy of this test's, ready to decide. */
export async function spawnGate(
  system: System,
  api: Api,
  { apiId, policy = {}, env = {} }: { apiId: string; policy?: Partial<CompiledPolicy>; env?: Record<string, string> },
): Promise<GateProcess> {
  const body = { apiId, name: "test/faults/gate", uid: "uid-1", generation: 1, policy: aPolicy({ apiId, ...policy }) };
  const { policyId } = await api.data("policies.setPolicy", body);
  const app = system.closing(await startApp());
  const { process, port } = await spawnSidecar({
    REDIS_URL: system.redisUrl,
    POSTERN_REDIS_PREFIX: system.prefix,
    POSTERN_WORKSPACE: await system.workspaceId(),
    POSTERN_POLICY: policyId,
    POSTERN_UPSTREAM: app.url,
    ...env,
  });
  system.closing({ close: () => process.stop() });
  return { status: async (key) => (await call(port, withKey(key))).status, process };
}
