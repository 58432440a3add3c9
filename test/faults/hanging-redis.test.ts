import { expect, test } from "vitest";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

/** One second for the Redis timeout, one for a loaded machine. */
const BOUND_MS = 2_000;

test("hanging Redis delays dependent calls by at most a second, and other calls not at all", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const plain = await makeKey(api);
  const { apiId } = plain;
  const limited = await api.data("keys.createKey", { apiId, credits: { remaining: 10 } });
  await api.data("keys.verifyKey", { key: limited.key });
  const took = async (path: string, body: object): Promise<{ status: number; ms: number }> => {
    const since = performance.now();
    const { status } = await api.call(path, body);
    return { status, ms: performance.now() - since };
  };
  process.kill(system.redis.pid, "SIGSTOP");
  try {
    for (const [path, body] of [
      ["keys.createKey", { apiId }],
      ["keys.createKey", { apiId, credits: { remaining: 5 } }],
      ["keys.updateKey", { keyId: plain.keyId, name: "renamed" }],
      ["keys.updateKey", { keyId: limited.keyId, name: "renamed" }],
      ["keys.getKey", { keyId: limited.keyId }],
      ["apis.listKeys", { apiId }],
      ["keys.verifyKey", { key: plain.key }],
      ["keys.deleteKey", { keyId: plain.keyId }],
    ] as const) {
      const { status, ms } = await took(path, body);
      expect({ path, body, status, inTime: ms < BOUND_MS }).toEqual({ path, body, status: 200, inTime: true });
    }
    // The credits are in Redis: they can be neither changed nor spent, and the calls fail quickly.
    for (const [path, body] of [
      ["keys.updateCredits", { keyId: limited.keyId, operation: "increment", value: 1 }],
      ["keys.verifyKey", { key: limited.key }],
    ] as const) {
      const { status, ms } = await took(path, body);
      expect({ path, status, inTime: ms < BOUND_MS }).toEqual({ path, status: 500, inTime: true });
    }
  } finally {
    process.kill(system.redis.pid, "SIGCONT");
  }
}, 60_000);
