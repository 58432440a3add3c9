import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { policyBody } from "../../api-server/test/resources.ts";
import { startEmbeddedPostgres } from "../../cli/embedded-postgres.ts";
import { policyFieldsOf } from "../../core/manifests/from-store/policy-spec.ts";
import type { RuleRatelimit } from "../../core/policies/policy.ts";
import { aPolicy, aRule } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import { openStack, READY_LOG, type Running, type Stack } from "./stack.ts";

/* The environment of the benchmarks: a Postgres, an api-server, an app, and further sidecars and api-servers on request. */

export interface Environment extends Stack {
  readonly upstream: Running;
  readonly apiId: string;
  /** Returns so many keys of the API, made with such a body of `keys.createKey`; further calls return the same ones. */
  keys(count: number, body?: Record<string, unknown>): Promise<readonly BenchKey[]>;
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

export interface BenchKey {
  readonly keyId: string;
  readonly key: string;
}

/** Calls under way while keys are made. */
const CREATIONS = 50;

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
    const upstream = await startChild("fixed-bytes.ts", []);
    const { apiId } = await call<{ apiId: string }>("apis.createApi", { name: "bench" });
    const keys = new Map<string, BenchKey[]>();

    return {
      ...stack,
      upstream,
      apiId,
      keys: async (count, body = {}) => {
        const kind = JSON.stringify(body);
        const made = keys.get(kind) ?? [];
        keys.set(kind, made);
        while (made.length < count) {
          const batch = Array.from({ length: Math.min(CREATIONS, count - made.length) }, () =>
            call<BenchKey>("keys.createKey", { apiId, ...body }),
          );
          made.push(...(await Promise.all(batch)));
        }
        await untilRelayed(postgres.url);
        return made.slice(0, count);
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

/** Waits until Redis has all changes, because a key that is missing there is read from Postgres at each verification. */
async function untilRelayed(databaseUrl: string): Promise<void> {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    const isEmpty = async () => (await db.query("select from outbox limit 1")).rowCount === 0;
    await waitFor("an empty outbox", isEmpty, { deadlineMs: 120_000 });
  } finally {
    await db.end();
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
