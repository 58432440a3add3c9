import { expect, onTestFinished, test } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { ADVISORY_LOCKS } from "../../postgres/advisory-locks.ts";
import { call } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openLine } from "./line.ts";
import { type Service, startService } from "./service.ts";
import { openSystem, type SpawnedApi, type System } from "./system.ts";

/* Clients reach replicas through an address that leads only to ready ones, so replicas must stay ready while they can respond. */

/** Starts two ready api-servers behind one address, with a verified key. */
async function openReplicas(system: System, databaseUrl: string) {
  const env = { DATABASE_URL: databaseUrl };
  const replicas = await Promise.all([system.spawnApi(env), system.spawnApi(env)]);
  const service = system.closing(await startService(replicas.map(({ url }) => url)));
  await waitFor("both to be ready", () => service.endpoints().length === 2);
  return { replicas, service };
}

/** Sends a request on a new connection, as a new client does. */
async function verify(system: System, { port }: Service, key: string) {
  const response = await call(port, {
    method: "POST",
    path: "/v2/keys.verifyKey",
    headers: { authorization: `Bearer ${system.rootKey}`, "content-type": "application/json" },
    body: JSON.stringify({ key }),
  });
  return { status: response.status, body: JSON.parse(response.body) };
}

/** Waits until the replica has processed every earlier change. */
async function hearsEverything(replica: SpawnedApi): Promise<void> {
  const askedAt = Date.now();
  await waitFor("the replica to hear of all changes", async () => {
    const text = await (await fetch(`${replica.url}/metrics`)).text();
    const seconds = Number(/^postern_projection_staleness_seconds (\S+)$/m.exec(text)?.[1]);
    return seconds >= 0 && Date.now() - seconds * 1000 > askedAt;
  });
}

const everyone = async (replicas: readonly SpawnedApi[], reason: string): Promise<boolean> =>
  (await Promise.all(replicas.map((replica) => replica.degradations()))).every((reasons) => reasons.includes(reason));

const A_LIMIT = { name: "some", limit: 5, duration: 3_600_000, autoApply: true };

test("requests routed by readiness are verified without Redis, for cached and new keys", async () => {
  const system = await openSystem({ ownRedis: true });
  const { replicas, service } = await openReplicas(system, system.databaseUrl);
  const { apiId, key } = await makeKey(replicas[0]);
  expect((await verify(system, service, key)).body.data.code).toBe("VALID");
  const limited = await replicas[0].data("keys.createKey", { apiId, ratelimits: [A_LIMIT], credits: { remaining: 3 } });
  const counted = await replicas[0].data("keys.createKey", { apiId, ratelimits: [A_LIMIT] });
  const { policyId } = (await replicas[0].data("managed.applyObject", policyBody(apiId, "explained"))).ids;

  await system.redis.kill("SIGKILL");
  await waitFor("both to say so", () => everyone(replicas, "redis_unavailable"));
  const { key: made } = await replicas[1].data("keys.createKey", { apiId });
  for (const each of [key, made, key, made, "nobody-has-this-key"]) {
    const { status, body } = await verify(system, service, each);
    expect([status, body.data?.code]).toEqual([200, each === key || each === made ? "VALID" : "NOT_FOUND"]);
  }
  // Explains the decision of the gates by onCounterFailure and onCreditFailure.
  const explained = (keyId: string) => replicas[1].data("keys.explainVerification", { keyId, policyId });
  expect(await explained(counted.keyId)).toMatchObject({ code: "VALID", status: 200, allowed: true });
  expect(await explained(limited.keyId)).toMatchObject({ code: "UNKNOWN", status: 503, allowed: false });
  expect(service.endpoints()).toHaveLength(2);
  expect(await (await fetch(`${replicas[0].url}/metrics`)).text()).toMatch(
    /^postern_degraded\{reason="redis_unavailable"\} 1$/m,
  );
  await waitFor("the log to say so", () => replicas[0].process.stderr().includes('"degradation":"redis_unavailable"'));

  await system.redis.restart();
  await waitFor("both to be whole again", async () => !(await everyone(replicas, "redis_unavailable")));
});

test("requests routed by readiness are served from caches without Postgres while the caches are fresh", async () => {
  const system = await openSystem();
  const line = system.closing(await openLine(system.databaseUrl));
  const through = new URL(system.databaseUrl);
  through.port = new URL(line.url).port;
  const { replicas, service } = await openReplicas(system, through.href);
  const { apiId, key } = await makeKey(replicas[0]);
  const stranger = (await replicas[0].data("keys.createKey", { apiId })).key;
  // A change invalidates earlier cache entries.
  await Promise.all(replicas.map(hearsEverything));
  for (const replica of replicas) expect(await replica.code(key)).toBe("VALID");

  line.cut();
  await waitFor("both to say so", () => everyone(replicas, "postgres_unavailable"));
  for (let i = 0; i < 4; i++)
    expect((await verify(system, service, key)).body).toMatchObject({ data: { code: "VALID" } });
  const unknown = await verify(system, service, stranger);
  expect([unknown.status, unknown.body.error?.type]).toEqual([500, expect.stringContaining("/service_unavailable")]);
  line.mend();
  await waitFor("both to be whole again", async () => !(await everyone(replicas, "postgres_unavailable")));
  expect((await verify(system, service, stranger)).body.data?.code).toBe("VALID");
});

test("replica without Postgres and without fresh data is unready and gets no more traffic", async () => {
  const system = await openSystem();
  // No relay runs, so no data counts as fresh.
  const elsewhere = await system.db.connect();
  onTestFinished(() => elsewhere.release(true));
  await elsewhere.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.relay]);
  const line = system.closing(await openLine(system.databaseUrl));
  const through = new URL(system.databaseUrl);
  through.port = new URL(line.url).port;
  const [cut, whole] = await Promise.all([system.spawnApi({ DATABASE_URL: through.href }), system.spawnApi()]);
  const service = system.closing(await startService([cut.url, whole.url]));
  await waitFor("both to be ready, if late", () => service.endpoints().length === 2);
  expect(await everyone([cut, whole], "propagation_delayed")).toBe(true);
  const { key } = await makeKey(whole);
  line.cut();
  await waitFor("one to be left", () => service.endpoints().length === 1);
  for (let i = 0; i < 3; i++) expect((await verify(system, service, key)).body.data?.code).toBe("VALID");
  expect(await cut.degradations()).toEqual(["postgres_unavailable", "propagation_delayed"]);
});
