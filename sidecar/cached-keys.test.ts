import { afterEach, expect, test } from "vitest";
import { aRule, call, openGate, type TestGate, withKey } from "../test/harness/gate.ts";

let gate: TestGate;
afterEach(() => gate.close());

const status = async (key: string) => (await call(gate.port, withKey(key))).status;
const cached = async (cache: string) =>
  Number(
    new RegExp(`^postern_sidecar_cache_entries\\{cache="${cache}"\\} (\\d+)$`, "m").exec(await gate.metrics())?.[1],
  );

test("gate serves keys that exceed its cache limit without caching them", async () => {
  gate = await openGate({ config: { cache: { keys: 2 } }, policy: { rules: [aRule()] } });
  const keys = await Promise.all([0, 1, 2, 3, 4].map(() => gate.records.putKey()));
  for (let round = 0; round < 2; round += 1) {
    for (const key of keys) expect(await status(key)).toBe(200);
    expect(await cached("keys")).toBe(2);
  }
  expect(await status("never made")).toBe(401);
});

test("gate cache evicts keys to stay within its memory limit", async () => {
  gate = await openGate({ config: { cache: { bytes: 6_000 } }, policy: { rules: [aRule()] } });
  const keys = await Promise.all(Array.from({ length: 20 }, () => gate.records.putKey()));
  for (const key of keys) expect(await status(key)).toBe(200);
  expect(await cached("keys")).toBeLessThan(5);
  expect(await cached("keys")).toBeGreaterThan(0);
});
