import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Authorization } from "../../sidecar/ext-auth/generated/envoy/service/auth/v3/external_auth_pb.js";
import { extAuthOf } from "../harness/ext-auth.ts";
import { aRule, openGate, startApp, type TestApp, type TestGate } from "../harness/gate.ts";
import { get, type Routers, startRouters } from "./routers.ts";
import { canonical, GUARDED_PATHS, inManifest, spellingsOf } from "./spellings.ts";

/*
 * No router serves a guarded path for a request that the rule of that path did not judge. Every spelling goes, without a key, to a gate where
 * everything else is open, and to its external authorization endpoints. What passes goes to each router, in the bytes that the app gets: from the
 * gate, or from a gateway that forwards what it received.
 */

let routers: Routers;
let app: TestApp;
let gate: TestGate;
beforeAll(async () => {
  routers = await startRouters(GUARDED_PATHS);
  app = await startApp();
  const rules = GUARDED_PATHS.map((path, index) =>
    aRule({
      path: index % 2 === 0 ? { exact: inManifest(path) } : { prefix: inManifest(path) },
      permissions: "guarded",
    }),
  );
  rules.push(aRule({ access: "Anonymous" }));
  gate = await openGate({ app, policy: { rules }, config: { extAuth: extAuthOf(["authorize", "grpc"]) } });
}, 900_000);
afterAll(async () => {
  await gate?.close();
  await routers?.close();
});

/** Calls `call` for each item, 16 at a time. */
async function forAll<T>(items: Iterable<T>, call: (item: T) => Promise<void>): Promise<void> {
  const iterator = items[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let next = iterator.next(); !next.done; next = iterator.next()) await call(next.value);
    }),
  );
}

const spellings = GUARDED_PATHS.flatMap(spellingsOf);
/** The targets that an app may get for each spelling that passes. */
const passed = new Set<string>();

test("gate never forwards a guarded path in canonical spelling without a key", async () => {
  await forAll(spellings, async (target) => {
    const { status } = await get(gate.port, target);
    expect([200, 400, 401], target).toContain(status);
  });
  for (const { url } of app.seen) passed.add(url);
  expect(GUARDED_PATHS.map(canonical).filter((path) => passed.has(path))).toEqual([]);
  expect(spellings.length).toBeGreaterThan(10_000);
  expect(passed.size).toBeGreaterThan(GUARDED_PATHS.length);
}, 300_000);

test.each(["X-Original", "X-Forwarded"])(
  "ext-auth HTTP endpoint decides requests with the header %s-Uri like the gate",
  async (prefix) => {
    const port = Number(new URL(gate.sidecar.authorizeUrl ?? "").port);
    await forAll(
      spellings.filter((target) => target.startsWith("/")),
      async (target) => {
        const given = { [`${prefix}-Method`]: "GET", [`${prefix}-URI`]: target };
        const { status, headers } = await get(port, "/authorize", given);
        if (status !== 200) return;
        passed.add(target);
        passed.add(String(headers["x-postern-target"] ?? ""));
      },
    );
    expect(passed).not.toContain("");
  },
  300_000,
);

test("ext-auth HTTP endpoint decides paths below /authorize as a gate in front of the app does", async () => {
  const port = Number(new URL(gate.sidecar.authorizeUrl ?? "").port);
  await forAll(
    spellings.filter((target) => target.startsWith("/")),
    async (target) => {
      if ((await get(port, `/authorize${target}`)).status === 200) passed.add(target);
    },
  );
}, 300_000);

test("ext-auth gRPC endpoint decides as a gate in front of the app does", async () => {
  const client = createClient(Authorization, createGrpcTransport({ baseUrl: gate.sidecar.grpcUrl ?? "" }));
  await forAll(spellings, async (target) => {
    const path = Buffer.from(target, "latin1").toString("utf8");
    const { status } = await client.check({ attributes: { request: { http: { method: "GET", path, host: "a" } } } });
    if (status?.code === 0) passed.add(target);
  });
}, 300_000);

test("every router serves most guarded paths in canonical spelling", async () => {
  const served = new Map<string, number>();
  for (const { name, port } of routers.all) {
    await forAll(GUARDED_PATHS, async (path) => {
      const { body } = await get(port, canonical(path));
      if (body.includes("guarded")) served.set(name, (served.get(name) ?? 0) + 1);
    });
  }
  for (const { name } of routers.all) expect(served.get(name) ?? 0, name).toBeGreaterThan(GUARDED_PATHS.length / 2);
}, 300_000);

test("no router serves a guarded path for a spelling that the gate admitted without a key", async () => {
  const evaded: string[] = [];
  for (const { name, port } of routers.all) {
    await forAll(passed, async (target) => {
      if ((await get(port, target)).body.includes("guarded")) evaded.push(`${name} ${JSON.stringify(target)}`);
    });
  }
  expect(evaded.sort()).toEqual([]);
}, 600_000);
