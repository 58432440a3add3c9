import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../cli/embedded-postgres.ts";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import type { CompiledPolicy, RuleRatelimit } from "../../core/policies/policy.ts";
import { startProcess } from "../harness/process.ts";
import { startOwnRedis } from "../harness/redis.ts";

/* What the benchmarks run against: a Postgres, a Redis, an api-server process, an app, and sidecars as asked for. */

export interface Running {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Environment {
  readonly redisUrl: string;
  readonly apiServer: Running;
  readonly upstream: Running;
  readonly workspaceId: string;
  readonly rootKey: string;
  readonly apiId: string;
  call<Data>(procedure: string, body: unknown): Promise<Data>;
  createKeys(count: number, body?: Record<string, unknown>): Promise<Array<{ keyId: string; key: string }>>;
  /** Stores a policy of one rule that wants a valid key, and gives its id. */
  createPolicy(name: string, ratelimits: readonly RuleRatelimit[]): Promise<string>;
  startSidecar(policyId: string, main?: readonly string[]): Promise<Running>;
  /** A process of test/load/children that prints its address. */
  startChild(file: string, args: readonly string[]): Promise<Running>;
  close(): Promise<void>;
}

export async function openEnvironment(): Promise<Environment> {
  const folder = mkdtempSync(join(tmpdir(), "postern-bench-"));
  const closers: Array<() => Promise<void>> = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "postgres") });
    closers.push(() => postgres.stop());
    const redis = await startOwnRedis();
    closers.push(() => redis.stop());
    const env = { DATABASE_URL: postgres.url, REDIS_URL: redis.url, POSTERN_LOG_LEVEL: "info" };

    const start = async (args: readonly string[], ready: RegExp): Promise<Running> => {
      const child = await startProcess(process.execPath, [...args], { env, readyLine: ready });
      const url = ready.exec(`${child.stdout()}\n${child.stderr()}`)?.[1] ?? "";
      const running = { url, pid: child.pid, stop: async () => void (await child.stop()) };
      closers.push(running.stop);
      return running;
    };
    const startChild = (file: string, args: readonly string[]) =>
      start([join(import.meta.dirname, "children", file), ...args], /^(http:\/\/\S+)$/m);

    const rootKeyJson = execFileSync(
      process.execPath,
      ["cli/main.ts", "rootkey", "create", "--json", "--permissions", ALL_GRANTS.join(",")],
      { env: { ...process.env, ...env }, encoding: "utf8" },
    );
    const { rootKey, workspaceId } = JSON.parse(rootKeyJson) as { rootKey: string; workspaceId: string };
    const apiServer = await start(["cli/main.ts", "api-server", "--host", "127.0.0.1", "--port", "0"], READY_LOG);
    const upstream = await startChild("upstream.ts", []);

    const call = async <Data>(procedure: string, body: unknown): Promise<Data> => {
      const response = await fetch(`${apiServer.url}/v2/${procedure}`, {
        method: "POST",
        headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const reply = (await response.json()) as { data: Data };
      if (!response.ok) throw new Error(`${procedure}: ${response.status} ${JSON.stringify(reply)}`);
      return reply.data;
    };
    const { apiId } = await call<{ apiId: string }>("apis.createApi", { name: "bench" });

    return {
      redisUrl: redis.url,
      apiServer,
      upstream,
      workspaceId,
      rootKey,
      apiId,
      call,
      createKeys: async (count, body = {}) => {
        const keys: Array<{ keyId: string; key: string }> = [];
        while (keys.length < count) {
          const batch = Array.from({ length: Math.min(20, count - keys.length) }, () =>
            call<{ keyId: string; key: string }>("keys.createKey", { apiId, ...body }),
          );
          keys.push(...(await Promise.all(batch)));
        }
        return keys;
      },
      createPolicy: async (name, ratelimits) => {
        const policy = onePolicy(apiId, ratelimits);
        const body = { apiId, name: `bench/default/${name}`, uid: name, generation: 1, policy };
        return (await call<{ policyId: string }>("policies.setPolicy", body)).policyId;
      },
      startSidecar: (policyId, main = ["cli/main.ts", "sidecar"]) => {
        const ids = ["--workspace", workspaceId, "--policy", policyId, "--upstream", upstream.url];
        return start([...main, ...ids, "--host", "127.0.0.1", "--port", "0", "--admin-port", "0"], READY_LOG);
      },
      startChild,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The log line with which a part says where it listens. */
const READY_LOG = /"url":"(http:\/\/127\.0\.0\.1:\d+)"/;

function onePolicy(apiId: string, ratelimits: readonly RuleRatelimit[]): CompiledPolicy {
  return {
    formatVersion: 1,
    apiId,
    mode: "Enforce",
    credentials: [{ in: "header", name: "Authorization", scheme: "Bearer" }],
    rules: [{ access: "Key", creditCost: 1, ratelimits: [...ratelimits] }],
    // Longer than any load, for the centre may be stopped during one.
    onStale: { afterMs: 600_000, action: "Serve", denyAfterMs: 900_000 },
    onCounterFailure: "Local",
    onCreditFailure: "Deny",
    allowPaths: [],
  };
}
