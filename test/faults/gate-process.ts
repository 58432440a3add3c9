import type { IncomingHttpHeaders } from "node:http";
import { policyBody } from "../../api-server/test/resources.ts";
import type { PolicyFields } from "../../core/manifests/from-store/policy-spec.ts";
import { call, startApp, withKey } from "../harness/gate.ts";
import type { RunningProcess } from "../harness/process.ts";
import { spawnSidecar } from "../harness/sidecar-process.ts";
import type { Api } from "./client.ts";
import type { System } from "./system.ts";

/** A gate in a separate process with the app behind it. */
export interface GateProcess {
  /** Returns the status of a request with this key. */
  status(key: string): Promise<number>;
  /** Returns the status and the headers that the app received. One request at a time. */
  ask(key: string): Promise<{ readonly status: number; readonly forwarded: IncomingHttpHeaders | undefined }>;
  readonly process: RunningProcess;
}

interface GuardedBy {
  readonly apiId: string;
  readonly policy?: PolicyFields;
  readonly env?: Record<string, string>;
}

/** Starts a gate as in a pod with a policy of this test, and waits until it is ready. */
export async function spawnGate(
  system: System,
  api: Api,
  { apiId, policy, env = {} }: GuardedBy,
): Promise<GateProcess> {
  const { policyId } = (await api.data("managed.applyObject", policyBody(apiId, apiId, policy))).ids;
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
  const status = async (key: string): Promise<number> => (await call(port, withKey(key))).status;
  return {
    status,
    ask: async (key) => ({ status: await status(key), forwarded: app.seen.at(-1)?.headers }),
    process,
  };
}
