import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { policyBody } from "../../api-server/test/resources.ts";
import { startEmbeddedPostgres } from "../../cli/embedded-postgres.ts";
import { policyFieldsOf } from "../../core/manifests/from-store/policy-spec.ts";
import type { RuleRatelimit } from "../../core/policies/policy.ts";
import { aPolicy, aRule } from "../harness/gate.ts";
import { openStack, READY_LOG, type Running, type Stack } from "./stack.ts";

/* The environment of the benchmarks: a Postgres, an api-server, an app, and further sidecars and api-servers on request. */

export interface Environment extends Stack {
  readonly upstream: Running;
  readonly apiId: string;
  createKeys(count: number, body?: Record<string, unknown>): Promise<Array<{ keyId: string; key: string }>>;
  /** Stores a policy of one rule that requires a valid key, and returns its id. */
  createPolicy(name: string, ratelimits: readonly RuleRatelimit[]): Promise<string>;
  startSidecar(policyId: string, main?: readonly string[]): Promise<Running>;
  /** Starts a process of test/load/children, which prints its address. */
  startChild(file: string, args: readonly string[]): Promise<Running>;
  /** An empty database in the same Postgres. Returns its URL. */
  createDatabase(name: string): Promise<string>;
  /** Another stack, on its own database in the same Postgres. `args` are for its first api-server. */
  openSecond(name: string, seed: Parameters<typeof openStack>[1], args?: readonly string[]): Promise<Stack>;
}

export async function openEnvironment(): Promise<Environment> {
  const folder = mkdtempSync(join(tmpdir(), "postern-bench-"));
  // Otherwise a Postgres that is started by root, as another user, keeps its files elsewhere, and they stay.
  chmodSync(folder, 0o711);
  const closers: Array<() => Promise<void>> = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "postgres"), temporary: true });
    closers.push(() => postgres.stop());
    const stack = await openStack(postgres.url);
    closers.push(stack.close);
    const { call, start } = stack;
    const startChild = (file: string, args: readonly string[]) =>
      start([join(import.meta.dirname, "children", file), ...args], /^(http:\/\/\S+)$/m);
    const upstream = await startChild("upstream.ts", []);
    const { apiId } = await call<{ apiId: string }>("apis.createApi", { name: "bench" });

    return {
      ...stack,
      upstream,
      apiId,
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
      createPolicy: (name, ratelimits) => createPolicy(stack, { apiId, name, ratelimits }),
      startSidecar: (policyId, main) => startSidecar(stack, { policyId, upstream, main }),
      startChild,
      createDatabase: (name) => createDatabase(postgres.url, name),
      openSecond: async (name, seed, args) => {
        const second = await openStack(await createDatabase(postgres.url, name), seed, args);
        closers.push(second.close);
        return second;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function createDatabase(serverUrl: string, name: string): Promise<string> {
  const db = new pg.Client({ connectionString: serverUrl });
  await db.connect();
  await db.query(`create database ${pg.escapeIdentifier(name)}`).finally(() => db.end());
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Stores a policy of one rule that requires a valid key, and returns its id. */
export async function createPolicy(
  { call }: Stack,
  { apiId, name, ratelimits }: { apiId: string; name: string; ratelimits: readonly RuleRatelimit[] },
): Promise<string> {
  const policy = aPolicy({
    credentials: [{ in: "header", name: "Authorization", scheme: "Bearer" }],
    rules: [aRule({ ratelimits: [...ratelimits] })],
    ...(ratelimits.some(({ by }) => by !== undefined) ? { clientAddress: { from: "connection" } } : {}),
    // Longer than any load, because the api-server may be stopped during one.
    onStale: { afterMs: 600_000, action: "Serve", denyAfterMs: 900_000 },
  });
  const body = policyBody(apiId, name, policyFieldsOf(policy));
  return (await call<{ ids: { policyId: string } }>("managed.applyObject", body)).ids.policyId;
}

/** Starts a sidecar of the stack's workspace; its admin port is a free one when left out. */
export function startSidecar(
  { start, workspaceId }: Stack,
  of: { policyId: string; upstream: Running; adminPort?: number; main?: readonly string[] | undefined },
): Promise<Running> {
  const { policyId, upstream, adminPort = 0, main = ["cli/main.ts", "sidecar"] } = of;
  const ids = ["--workspace", workspaceId, "--policy", policyId, "--upstream", upstream.url];
  const ports = ["--host", "127.0.0.1", "--port", "0", "--admin-port", String(adminPort)];
  return start([...main, ...ids, ...ports], READY_LOG);
}
