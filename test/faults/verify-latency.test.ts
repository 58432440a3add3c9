import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey, type TestKey } from "./client.ts";
import { openSystem } from "./system.ts";

/*
 * A backend calls keys.verifyKey for each of its requests. Without Redis the api-server decides limits locally, so only calls in flight at
 * the start of the outage may be delayed.
 */

const CALLERS = 16;
const OUTAGE_MS = 10_000;
/** An api-server waits for Redis for one second, once per call. */
const WAIT_MS = 1_000;
const NOISE_MS = 500;

test.each([
  { name: "was killed", signal: "SIGKILL" },
  { name: "hangs", signal: "SIGSTOP" },
] as const)(
  "verifyKey waits once per caller for a Redis that $name, and is then fast again",
  async ({ signal }) => {
    const system = await openSystem({ ownRedis: true });
    const api = await system.spawnApi();
    await waitFor("the api-server to be whole", () => api.isComplete());
    const { apiId } = await makeKey(api);
    const ratelimits = [{ name: "all", limit: 1_000_000, duration: 3_600_000, autoApply: true }];
    const keys: TestKey[] = [];
    for (let i = 0; i < 40; i++) keys.push(await api.data("keys.createKey", { apiId, ratelimits }));

    const load = async (ms: number): Promise<readonly number[]> => {
      const took: number[] = [];
      const until = performance.now() + ms;
      const call = async (caller: number): Promise<void> => {
        for (let i = caller; performance.now() < until; i++) {
          const since = performance.now();
          const code = await api.code(keys[i % keys.length]?.key ?? "");
          took.push(performance.now() - since);
          expect(code).toBe("VALID");
        }
      };
      await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
      return took.toSorted((a, b) => a - b);
    };
    const show = (what: string, took: readonly number[]): void => {
      const [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1].map((part) => at(took, part).toFixed(1));
      console.log(`${what}: ${took.length} calls, p50 ${p50} ms, p95 ${p95}, p99 ${p99}, max ${max}`);
    };

    // Many successful calls, so that a few failures are a small share.
    await load(3_000);
    const before = await load(6_000);
    show("before", before);
    const outage = load(OUTAGE_MS);
    await sleep(100);
    if (signal === "SIGKILL") await system.redis.kill(signal);
    else process.kill(system.redis.pid, signal);
    const during = await outage;
    show(`Redis ${signal}`, during);
    if (signal === "SIGSTOP") process.kill(system.redis.pid, "SIGCONT");
    else await system.redis.restart();

    expect(at(during, 1)).toBeLessThan(WAIT_MS + NOISE_MS);
    const waited = during.filter((ms) => ms > 0.9 * WAIT_MS).length;
    expect(waited).toBeLessThanOrEqual(signal === "SIGKILL" ? 0 : CALLERS);
    // Ratios within one run, because a slow machine affects both parts.
    expect(at(during, 0.95)).toBeLessThan(5 * at(before, 0.95) + 50);

    // The shared counters are used again: local counts would restart.
    const limit = { namespace: "n", identifier: "u", limit: 1_000, duration: 3_600_000 };
    await waitFor("limits to be counted in Redis again", async () => {
      await api.data("ratelimit.limit", limit);
      return (await system.raw.keys(`${system.prefix}:*:rl:*`)).length > 0;
    });
  },
  120_000,
);

const at = (sorted: readonly number[], part: number): number => sorted[Math.floor((sorted.length - 1) * part)] ?? 0;
