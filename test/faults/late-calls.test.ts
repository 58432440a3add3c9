import { expect, test } from "vitest";
import type { Consumed, LimitCharge } from "../../core/charges.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { startOwnRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

/* Redis hangs and resumes with pending requests in its sockets. A caller that was told that counting failed must not be charged. */

const PAUSE_MS = 2_000;

async function whileStopped(pid: number, work: () => Promise<void>): Promise<void> {
  process.kill(pid, "SIGSTOP");
  const since = performance.now();
  try {
    await work();
    await waitFor("the pause to end", () => performance.now() - since >= PAUSE_MS);
  } finally {
    process.kill(pid, "SIGCONT");
  }
}

test.each([
  { name: "Redis", cluster: false },
  { name: "Redis Cluster", cluster: true },
])(
  "timed-out calls to a paused $name are not charged after it resumes",
  async ({ cluster }) => {
    const redis = await startOwnRedis(cluster ? { cluster, args: ["--cluster-announce-ip", "127.0.0.1"] } : {});
    const url = cluster ? `${redis.url}?cluster=true` : redis.url;
    const edge = await openRedisEdge({ url, clientName: "late" });
    try {
      const counters = edge.counters({ timeoutMs: 50 });
      const ref = { workspaceId: "ws_late", keyId: "key_late" };
      const limit: LimitCharge = {
        workspaceId: ref.workspaceId,
        scope: { kind: "name", value: "writes" },
        identifier: ref.keyId,
        limit: 1_000_000,
        durationMs: 86_400_000,
        cost: 1,
        accuracy: "strict",
      };
      await edge.credits.load([{ ref, counter: { rev: 1, granted: 1_000_000, spent: 0 } }]);
      const consume = (): Promise<Consumed | undefined> =>
        counters.consume({ limits: [limit], credits: { ...ref, cost: 1 } }).catch(() => undefined);
      await waitFor("the counters", async () => (await consume()) !== undefined);
      const used = async () => {
        const [counter] = await edge.credits.read([ref]);
        return counter?.spent;
      };
      const before = (await used()) ?? 0;
      let admitted = 0;
      await whileStopped(redis.pid, async () => {
        // Several groups: some requests are sent, some wait for a reply, and some arrive while the circuit breaker is open.
        for (let group = 0; group < 10; group++) {
          const responses = await Promise.all(Array.from({ length: 20 }, consume));
          admitted += responses.filter((response) => response !== undefined).length;
        }
      });
      expect(admitted).toBe(0);
      let after: Consumed | undefined;
      await waitFor("the counters again", async () => {
        after = await consume();
        return after !== undefined;
      });
      expect(await used()).toBe(before + 1);
      // Equal units of limit and credits are consumed, because a denied call consumes neither.
      expect(after?.limits[0]?.remaining).toBe(1_000_000 - (before + 1));
    } finally {
      await edge.close();
      await redis.stop();
    }
  },
  60_000,
);

/** Work repeated by several loops that can be paused between iterations. */
class LockableResource {
  #held: Promise<void> | undefined;
  #underWay = 0;

  async run(work: () => Promise<void>): Promise<void> {
    await this.#held;
    this.#underWay += 1;
    await work().finally(() => {
      this.#underWay -= 1;
    });
  }

  /** Calls `work` while no iteration is running, then resumes the loops. */
  async between(work: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    await waitFor("the calls under way to end", () => this.#underWay === 0);
    work();
    this.#held = undefined;
    resolve();
  }
}

test("call that reports that credits could not be counted has spent none", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId, keyId, key } = await makeKey(api, { credits: { remaining: 100_000 } });
  const gate = await system.gate(api, { apiId });
  let spent = 0;
  await waitFor("the gate to let the key through", async () => {
    const passed = (await gate.status(key)) === 200;
    if (passed) spent += 1;
    return passed;
  });
  let isStopped = false;
  let unavailable = 0;
  const calls = new LockableResource();
  const askOnce = async (i: number): Promise<void> => {
    const response = i < 2 ? { status: await gate.status(key) } : await api.call("keys.verifyKey", { key });
    const isSpent = response.status === 200 && (!("body" in response) || response.body.data.code === "VALID");
    if (isSpent) spent += 1;
    else unavailable += 1;
  };
  const asking = Array.from({ length: 4 }, async (_, i) => {
    while (!isStopped) await calls.run(() => askOnce(i));
  });
  try {
    for (let time = 0; time < 3; time++) {
      const before = spent;
      await waitFor("somebody to spend", () => spent > before + 5, { deadlineMs: 30_000 });
      // Never within a call: if Redis counts and then hangs before its reply, the caller times out although it was charged, as with a lost
      // reply.
      await calls.between(() => process.kill(system.redis.pid, "SIGSTOP"));
      await whileStopped(system.redis.pid, async () => {});
    }
    const before = spent;
    await waitFor("somebody to spend again", () => spent > before + 5, { deadlineMs: 30_000 });
  } finally {
    isStopped = true;
    await Promise.all(asking);
  }
  expect(unavailable).toBeGreaterThan(0);
  const { credits } = await api.data("keys.getKey", { keyId });
  expect(credits.remaining).toBe(100_000 - spent);
}, 150_000);
