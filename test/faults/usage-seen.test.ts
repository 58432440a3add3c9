import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

/* The complete path of usage: from its origin through Redis into the database, and out through v1 and v2. */

/** Promise of api-v2.md section 18. */
const BOUND = { deadlineMs: 5000, everyMs: 100 };

test("usage of the API and of a gate is visible in v2 and v1 within 5 s", async () => {
  const system = await openSystem();
  const [a, b] = [await system.api(), await system.api()];
  const { apiId, keyId, key } = await makeKey(a);
  const gate = await system.gate(a, { apiId });
  const seen = async (query: string, of: "getVerifications" | "getRatelimits" = "getVerifications") =>
    JSON.stringify(await b.data(`analytics.${of}`, { query }));

  for (let call = 0; call < 3; call++) expect(await a.code(key)).toBe("VALID");
  for (let call = 0; call < 2; call++) expect(await gate.status(key)).toBe(200);
  for (let call = 0; call < 4; call++) {
    await a.data("ratelimit.limit", { namespace: "seen", identifier: "x", limit: 3, duration: 3_600_000 });
  }

  const bySource = (table: string, count: string) =>
    `SELECT source, ${count} AS n FROM ${table} WHERE key_id = '${keyId}' GROUP BY source ORDER BY source`;
  const expected = JSON.stringify([
    { source: "api", n: 3 },
    { source: "sidecar", n: 2 },
  ]);
  await waitFor(
    "the events",
    async () => (await seen(bySource("key_verifications_v1", "count()"))) === expected,
    BOUND,
  );
  const hourly = bySource("key_verifications_per_hour_v1", "sum(count)");
  await waitFor("their counts", async () => (await seen(hourly)) === expected, BOUND);
  const decisions = "SELECT sum(passed) AS passed, sum(total) AS total FROM ratelimits_per_minute_v1";
  const limited = JSON.stringify([{ passed: 3, total: 4 }]);
  await waitFor("the decisions", async () => (await seen(decisions, "getRatelimits")) === limited, BOUND);

  expect(await b.data("v1/analytics.getVerifications", { apiId, groupBy: ["key"] })).toMatchObject([
    { keyId, valid: 5, total: 5 },
  ]);
  const { verifications } = await a.data("v1/keys.getVerifications", { keyId });
  expect(verifications.map(({ success }: { success: number }) => success).reduce((x: number, y: number) => x + y)).toBe(
    5,
  );
});
