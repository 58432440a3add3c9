import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

test("refills during concurrent spending neither lose nor duplicate credits", async () => {
  const system = await openSystem();
  const api = await system.api();
  const { apiId } = await makeKey(api);
  const amount = 40;
  const { keyId, key } = await api.data("keys.createKey", {
    apiId,
    credits: { remaining: 100, refill: { interval: "daily", amount } },
  });
  // Dates in the future, which the server's own refill runs ignore.
  await system.db.query("update key_credits set last_refill_on = '2051-01-01' where key_id = $1", [keyId]);
  const gates = [await system.gate(api, { apiId }), await system.gate(api, { apiId })];
  await waitFor("the key to be let through", async () => (await gates[0]?.status(key)) === 200);

  let spent = 1;
  let isStopped = false;
  const byPods = gates.map(async (gate) => {
    while (!isStopped) if ((await gate.status(key)) === 200) spent += 1;
  });
  const byApi = async () => {
    while (!isStopped) {
      const { code, credits } = await api.data("keys.verifyKey", { key });
      expect(credits).toBeGreaterThanOrEqual(0);
      if (code === "VALID") spent += 1;
    }
  };
  const spending = Promise.all([...byPods, byApi()]);
  let refilled = 0;
  try {
    for (let day = 2; day <= 16; day++) {
      const today = `2051-01-${String(day).padStart(2, "0")}`;
      const runs = await Promise.all([api.server.refill(today), api.server.refill(today)]);
      refilled += runs.reduce((sum, run) => sum + (run?.refilled ?? 0), 0);
      const before = spent;
      await waitFor("somebody to spend", () => spent > before);
    }
  } finally {
    isStopped = true;
    await spending;
  }
  expect(refilled).toBe(15);
  const { credits } = await api.data("keys.verifyKey", { key, credits: { cost: 0 } });
  expect(credits).toBe(100 + 15 * amount - spent);
});
