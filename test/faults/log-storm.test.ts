import { pino } from "pino";
import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

const REQUESTS = 500;

test("Redis outage is logged at a limited rate despite failing requests", async () => {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const system = await openSystem({ ownRedis: true, log });
  const api = await system.api();
  const { apiId, key: plain } = await makeKey(api);
  const limits = [{ name: "requests", limit: 1_000_000, duration: 3_600_000, autoApply: true }];
  const { key: limited } = await api.data("keys.createKey", { apiId, ratelimits: limits });
  const { key: credited } = await api.data("keys.createKey", { apiId, credits: { remaining: 1_000_000 } });
  const keys = [plain, limited, credited];
  const gate = await system.gate(api, { apiId, policy: { rules: [{}] } });
  for (const key of keys) {
    expect(await api.code(key)).toBe("VALID");
    await waitFor("the gate to let the key through", async () => (await gate.status(key)) === 200);
  }

  await system.redis.kill("SIGKILL");
  lines.length = 0;
  const startedAt = performance.now();
  const statuses = new Set<number>();
  for (let done = 0; done < REQUESTS; done += 20) {
    const batch = Array.from({ length: 20 }, async (_, i) => {
      const key = keys[i % keys.length] ?? plain;
      statuses.add((await api.call("keys.verifyKey", { key })).status);
      statuses.add(await gate.status(key));
    });
    await Promise.all(batch);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  // Plain and limited keys are served and credits cannot be spent, many times, at the api-server and at the gate.
  expect([...statuses].sort()).toEqual([200, 500, 503]);
  expect(lines.length, lines.join("")).toBeLessThan(10 * Math.max(1, seconds));
  expect(lines.join("")).toContain("service_unavailable at /v2/keys.verifyKey");
}, 60_000);
