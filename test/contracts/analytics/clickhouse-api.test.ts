import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { type ApiServer, start } from "../../../api-server/start.ts";
import { createMemoryEdge } from "../../../edge/open.ts";
import { createTestClickhouse } from "../../harness/clickhouse.ts";
import { createTestDatabase } from "../../harness/postgres.ts";
import { waitFor } from "../../harness/wait.ts";

/* An api-server with usage events in ClickHouse, from the request to the query result. */

async function startWith(analyticsUrl: string): Promise<{ api: ApiServer; call: Call }> {
  const database = await createTestDatabase();
  const edge = createMemoryEdge();
  const logger = pino({ level: "silent" });
  const analytics = { url: analyticsUrl };
  const api = await start({ databaseUrl: database.url, edge, host: "127.0.0.1", port: 0, logger, analytics });
  onTestFinished(async () => {
    await api.close();
    await edge.close();
    await database.drop();
  });
  const { rootKey } = await api.devRootKey(undefined);
  const call: Call = async (procedure, body) => {
    const reply = await fetch(`${api.url}/v2/${procedure}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: reply.status, data: ((await reply.json()) as { data: never }).data };
  };
  return { api, call };
}

type Call = (procedure: string, body: object) => Promise<{ status: number; data: Record<string, never> & unknown[] }>;

/** Verifies a key three times and returns the id of its API. */
async function verifyThrice(call: Call): Promise<string> {
  const { data: made } = await call("apis.createApi", { name: "payments" });
  const { data: key } = await call("keys.createKey", { apiId: made.apiId });
  for (let i = 0; i < 3; i++) {
    expect(await call("keys.verifyKey", { key: key.key, tags: ["t"] })).toMatchObject({
      status: 200,
      data: { valid: true },
    });
  }
  return String(made.apiId);
}

test("ClickHouse query finds a verification within seconds", async () => {
  const clickhouse = await createTestClickhouse();
  const { call } = await startWith(clickhouse.url);
  onTestFinished(() => clickhouse.drop());
  const apiId = await verifyThrice(call);
  const query = "SELECT outcome, SUM(count) AS n FROM key_verifications_per_day_v1 GROUP BY outcome";
  const found = await waitFor(
    "the events",
    async () => {
      const { status, data } = await call("analytics.getVerifications", { query });
      expect(status).toBe(200);
      return data.length > 0 && (data[0] as { n: number }).n === 3 && data;
    },
    { deadlineMs: 20_000, everyMs: 200 },
  );
  expect(found).toEqual([{ outcome: "VALID", n: 3 }]);
  const ofApi = async (id: string) => {
    const where = `WHERE key_space_id = keySpaceOf('${id}')`;
    const counted = `SELECT SUM(count) AS n FROM key_verifications_per_day_v1 ${where}`;
    return (await call("analytics.getVerifications", { query: counted })).data;
  };
  expect([await ofApi(apiId), await ofApi("api_absent")]).toEqual([[{ n: 3 }], [{ n: 0 }]]);
});

test("api-server without ClickHouse starts, verifies keys and responds 503 to queries", async () => {
  const { api, call } = await startWith("http://default:x@127.0.0.1:1/db");
  await verifyThrice(call);
  const query = "SELECT count() FROM key_verifications_v1";
  expect((await call("analytics.getVerifications", { query })).status).toBe(503);
  expect(await degradations(api)).toContain("clickhouse_unavailable");
});

test("api-server with a wrong ClickHouse password becomes ready and reports access denied", async () => {
  const clickhouse = await createTestClickhouse();
  const url = new URL(clickhouse.url);
  url.password = "wrong";
  const { api, call } = await startWith(url.href);
  onTestFinished(() => clickhouse.drop());
  expect(await degradations(api)).toContain("clickhouse_access_denied");
  const query = "SELECT count() FROM key_verifications_v1";
  expect((await call("analytics.getVerifications", { query })).status).toBe(503);
});

async function degradations(api: ApiServer): Promise<string[]> {
  const reply = await fetch(`${api.url}/readyz?verbose`);
  expect(reply.status).toBe(200);
  const { degradations } = (await reply.json()) as { degradations: { reason: string }[] };
  return degradations.map(({ reason }) => reason);
}
