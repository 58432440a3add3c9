import { onTestFinished } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { countedHash, RedisKeys } from "../../edge/redis/keys.ts";
import { aPolicy, aRule, call, POLICY, Records, startApp, WORKSPACE, withKey } from "../harness/gate.ts";
import type { Replicated } from "../harness/redis-kinds.ts";
import { type SidecarProcess, spawnSidecar } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * Two gates that count strictly on a replicated Redis. The policy says Deny, so only requests counted by the shared counters are admitted.
 */

export const HOUR_MS = 3_600_000;
export const LIMIT = 150;
/** Consecutive limit denials of a gate after which the limit counts as exhausted. */
const REFUSED_IN_A_ROW = 10;

export interface Failover {
  readonly store: Replicated;
  readonly gates: readonly SidecarProcess[];
  readonly records: Records;
  readonly key: string;
  /** Redis key of the key's limit counter: in a cluster its slot determines the master. */
  readonly counter: string;
  /** Sends requests through both gates until stopped. */
  traffic(): Traffic;
}

export interface Traffic {
  readonly statuses: ReadonlySet<number>;
  /** Admitted requests, including those of the start. */
  admitted(): number;
  isUsedUp(): boolean;
  stop(): Promise<void>;
}

export interface FailoverOptions {
  readonly store: Replicated;
  /** `USER:PASSWORD` of the relay and of the gates. */
  readonly users?: { readonly central: string; readonly gates: string } | undefined;
  readonly caFile?: string | undefined;
  readonly ca?: string | undefined;
}

/** Opens the gates with their Redis; all are closed at the end of the test. */
export async function openFailover({ store, users, caFile, ca }: FailoverOptions): Promise<Failover> {
  onTestFinished(() => store.stop());
  const as = (user: string | undefined) => (user === undefined ? store.url : store.url.replace("//", `//${user}@`));
  const tls = ca === undefined ? undefined : () => ({ ca });
  const relay = await openRedisEdge({ url: as(users?.central), tls, clientName: "test-relay" });
  onTestFinished(() => relay.close());
  await waitFor("the store to be there", () => relay.ping().then(() => true), { deadlineMs: 20_000 });
  // Redis users of pods may run scripts but not load them.
  await waitFor("the scripts to be loaded", () => relay.loadScripts().then(() => true), { deadlineMs: 20_000 });
  const records = new Records(relay);
  await records.begin();
  const limit = { scope: { kind: "name", name: "all" }, identifier: "key", limit: LIMIT } as const;
  const ratelimits = [{ ...limit, durationMs: HOUR_MS, cost: 1, accuracy: "strict" as const }];
  await records.putPolicy(aPolicy({ rules: [aRule({ ratelimits })], onCounterFailure: "Deny" }));
  await records.complete();
  const beat = setInterval(() => {
    void records.heartbeat().catch(() => undefined);
    void relay.loadScripts().catch(() => undefined);
  }, 300);
  onTestFinished(() => clearInterval(beat));
  const app = await startApp();
  onTestFinished(() => app.close());
  const start = async (pod: string): Promise<SidecarProcess> => {
    const gate = await spawnSidecar({
      REDIS_URL: as(users?.gates),
      ...(caFile === undefined ? {} : { REDIS_CA_FILE: caFile }),
      POSTERN_WORKSPACE: WORKSPACE,
      POSTERN_POLICY: POLICY,
      POSTERN_UPSTREAM: app.url,
      POSTERN_POD: pod,
    });
    onTestFinished(async () => void (await gate.process.stop()));
    return gate;
  };
  const gates = await Promise.all(["pod-1", "pod-2"].map(start));
  const key = await records.putKey();
  for (const { port } of gates) {
    await waitFor("the gate to count", async () => (await call(port, withKey(key))).status === 200);
  }
  const hash = countedHash("name", "all", `key_${hashKey(key).slice(0, 8)}`);
  const counter = new RedisKeys().counter(WORKSPACE, hash, HOUR_MS);
  return { store, gates, records, key, counter, traffic: () => sendThrough(gates, key) };
}

function sendThrough(gates: readonly SidecarProcess[], key: string): Traffic {
  let admitted = gates.length;
  let isOver = false;
  const statuses = new Set<number>();
  const refused = gates.map(() => 0);
  const asking = gates.map(async ({ port }, gate) => {
    while (!isOver) {
      const { status } = await call(port, withKey(key));
      statuses.add(status);
      if (status === 200) admitted += 1;
      refused[gate] = status === 429 ? (refused[gate] ?? 0) + 1 : 0;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  });
  const stop = async (): Promise<void> => {
    isOver = true;
    await Promise.all(asking);
  };
  // Also stops when the test fails earlier.
  onTestFinished(stop);
  return {
    statuses,
    admitted: () => admitted,
    isUsedUp: () => refused.every((times) => times >= REFUSED_IN_A_ROW),
    stop,
  };
}

/** Waits if the current window would end during the test and admit more requests. */
export const enoughOfTheHour = () =>
  waitFor("a window with time left", () => Date.now() % HOUR_MS < HOUR_MS - 120_000, { deadlineMs: 130_000 });

/** Returns the number of uncaught errors. */
export async function strayErrors(gates: readonly SidecarProcess[]): Promise<number> {
  const bodies = await Promise.all(
    gates.map(async ({ adminPort }) => (await call(adminPort, { path: "/metrics" })).body),
  );
  const counted = bodies.map((body) => /postern_sidecar_internal_errors_total\{source="stray"\} (\d+)/.exec(body)?.[1]);
  return counted.reduce((sum, times) => sum + Number(times), 0);
}
