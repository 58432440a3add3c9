import { resolve } from "node:path";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { aPolicy, call, POLICY, Records, WORKSPACE } from "./gate.ts";
import { PROGRAM, type RunningProcess, startProcess } from "./process.ts";
import { createTestRedis } from "./redis.ts";
import { waitFor } from "./wait.ts";

const ROOT = resolve(import.meta.dirname, "../..");

export interface SidecarProcess {
  readonly process: RunningProcess;
  readonly port: number;
  readonly adminPort: number;
  /** 0 for a closed endpoint. */
  readonly extAuth: { readonly authorize: number; readonly grpc: number };
}

/** Starts a gate as in a pod and waits until it is ready: `env` names its policy, Redis and app. The caller stops it. */
export async function spawnSidecar(env: Record<string, string>, nodeArgs: string[] = []): Promise<SidecarProcess> {
  const sidecar = await spawnUnready(env, nodeArgs);
  await waitFor("the sidecar to be ready", () => isReady(sidecar));
  return sidecar;
}

/** Starts a gate whose policy may not exist yet. */
export async function spawnUnready(env: Record<string, string>, nodeArgs: string[] = []): Promise<SidecarProcess> {
  const child = await startProcess(process.execPath, [...nodeArgs, PROGRAM, "sidecar"], {
    cwd: ROOT,
    readyLine: /"msg":"listening".*\n/,
    env: {
      POSTERN_HOST: "127.0.0.1",
      POSTERN_SIDECAR_PORT: "0",
      POSTERN_ADMIN_PORT: "0",
      POSTERN_DRAIN_TIMEOUT: "0",
      ...env,
    },
  });
  const line = child
    .stderr()
    .split("\n")
    .find((one) => one.includes('"msg":"listening"'));
  const said = JSON.parse(line ?? "{}");
  const portOf = (url: string | undefined): number => (url === undefined ? 0 : Number(new URL(url).port));
  const extAuth = { authorize: portOf(said.authorizeUrl), grpc: portOf(said.grpcUrl) };
  return { process: child, port: portOf(said.url), adminPort: portOf(said.adminUrl), extAuth };
}

export const isReady = async ({ adminPort }: SidecarProcess): Promise<boolean> =>
  (await call(adminPort, { path: "/readyz" })).status === 200;

export interface GuardedApp extends SidecarProcess {
  readonly edge: Edge;
  readonly records: Records;
  metrics(): Promise<string>;
  /** Stops the process and deletes its records. */
  close(): Promise<void>;
}

/** Starts a gate process for one test in front of the app at `upstream`, with records written as by the relay. */
export async function guardApp(options: {
  upstream: string;
  policy?: Partial<CompiledPolicy>;
  nodeArgs?: string[];
  env?: Readonly<Record<string, string>>;
}): Promise<GuardedApp> {
  const redis = await createTestRedis();
  const prefix = redis.prefix.replace(/:$/, "");
  const edge = await openRedisEdge({ url: redis.url, prefix, clientName: "test-relay" });
  await waitFor("the store to be there", () => edge.ping().then(() => true));
  const records = new Records(edge);
  await records.begin();
  await records.putPolicy(aPolicy(options.policy));
  await records.complete();
  const beat = setInterval(() => void records.heartbeat().catch(() => undefined), 500);
  const closeStore = async (): Promise<void> => {
    clearInterval(beat);
    await edge.close();
    await redis.close();
  };
  const env = {
    REDIS_URL: redis.url,
    POSTERN_REDIS_PREFIX: prefix,
    POSTERN_WORKSPACE: WORKSPACE,
    POSTERN_POLICY: POLICY,
    POSTERN_UPSTREAM: options.upstream,
    ...options.env,
  };
  try {
    const sidecar = await spawnSidecar(env, options.nodeArgs);
    return {
      ...sidecar,
      edge,
      records,
      metrics: async () => (await call(sidecar.adminPort, { path: "/metrics" })).body,
      close: async () => {
        await sidecar.process.stop();
        await closeStore();
      },
    };
  } catch (error) {
    await closeStore();
    throw error;
  }
}
