import { resolve } from "node:path";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { aPolicy, call, startApp, withKey } from "../harness/gate.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import type { Api } from "./client.ts";
import type { System } from "./system.ts";

const ROOT = resolve(import.meta.dirname, "../..");

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
  { apiId, policy = {} }: { apiId: string; policy?: Partial<CompiledPolicy> },
): Promise<GateProcess> {
  const body = { apiId, name: "test/faults/gate", uid: "uid-1", generation: 1, policy: aPolicy({ apiId, ...policy }) };
  const { policyId } = await api.data("policies.setPolicy", body);
  const app = system.closing(await startApp());
  const child = await startProcess(process.execPath, ["cli/main.ts", "sidecar"], {
    cwd: ROOT,
    readyLine: /"msg":"listening".*\n/,
    env: {
      REDIS_URL: system.redisUrl,
      POSTERN_REDIS_PREFIX: system.prefix,
      POSTERN_WORKSPACE: await system.workspaceId(),
      POSTERN_POLICY: policyId,
      POSTERN_UPSTREAM: app.url,
      POSTERN_HOST: "127.0.0.1",
      POSTERN_SIDECAR_PORT: "0",
      POSTERN_ADMIN_PORT: "0",
    },
  });
  system.closing({ close: () => child.stop() });
  const line = child
    .stderr()
    .split("\n")
    .find((one) => one.includes('"msg":"listening"'));
  const { url, adminUrl } = JSON.parse(line ?? "{}");
  const [port, adminPort] = [url, adminUrl].map((one) => Number(new URL(one).port)) as [number, number];
  await waitFor("the sidecar to be ready", async () => (await call(adminPort, { path: "/readyz" })).status === 200);
  return { status: async (key) => (await call(port, withKey(key))).status, process: child };
}
