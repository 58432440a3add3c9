import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { openRedisEdge } from "../../edge/open.ts";
import { aPolicy, aRule, POLICY, Records, startApp, type TestApp, WORKSPACE } from "../harness/gate.ts";
import { type OwnRedis, startOwnRedis } from "../harness/redis.ts";
import { type SidecarProcess, spawnSidecar } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * Environment of gateway tests: an app, a gate with open ext-auth endpoints and no upstream, and a Redis that may be stopped. The test
 * starts the gateway.
 */

const EXAMPLES = resolve(import.meta.dirname, "../../examples/gateways");
const HOUR = 3_600_000;

/** The policy behind the gateways; `suite.ts` tests each rule. */
const POLICY_OF_WORLD = aPolicy({
  formatVersion: 2,
  credentials: [
    { in: "header", name: "Authorization", scheme: "Bearer" },
    { in: "header", name: "X-API-Key" },
    { in: "query", name: "api_key" },
  ],
  rules: [
    aRule({ hosts: ["denied.test"], access: "Deny" }),
    aRule({ headers: [{ name: "X-Denied" }], access: "Deny" }),
    aRule({
      path: { prefix: "/guests" },
      access: "Anonymous",
      ratelimits: [
        {
          scope: { kind: "name", name: "guests" },
          by: ["address"],
          limit: 2,
          durationMs: HOUR,
          cost: 1,
          accuracy: "strict",
        },
      ],
    }),
    aRule({ path: { prefix: "/public" }, access: "Anonymous" }),
    aRule({ path: { prefix: "/admin" }, permissions: "admin" }),
    aRule({ methods: ["DELETE"], permissions: "admin" }),
    aRule({
      name: "limited",
      path: { prefix: "/limited" },
      ratelimits: [
        {
          scope: { kind: "name", name: "calls" },
          identifier: "key",
          limit: 2,
          durationMs: HOUR,
          cost: 1,
          accuracy: "strict",
        },
      ],
    }),
  ],
  clientAddress: { from: "forwardedFor", trustedProxies: [] },
});

export interface World {
  readonly app: TestApp;
  readonly records: Records;
  readonly redis: OwnRedis;
  readonly gate: SidecarProcess;
  /** Of the ext-auth endpoint; undefined when it is not open. */
  readonly appPort: number;
  readonly authorizePort: number;
  readonly grpcPort: number;
  close(): Promise<void>;
}

/** `env` extends the environment of the gate. */
export async function openWorld(env: Readonly<Record<string, string>> = {}): Promise<World> {
  const redis = await startOwnRedis();
  const edge = await openRedisEdge({ url: redis.url, prefix: "ps", clientName: "test-relay" });
  await waitFor("the store to be there", () => edge.ping().then(() => true));
  const records = new Records(edge);
  await records.begin();
  await records.putPolicy(POLICY_OF_WORLD);
  await records.complete();
  const beat = setInterval(() => void records.heartbeat().catch(() => undefined), 500);
  const app = await startApp();
  const gate = await spawnSidecar({
    REDIS_URL: redis.url,
    POSTERN_WORKSPACE: WORKSPACE,
    POSTERN_POLICY: POLICY,
    POSTERN_EXT_AUTH_HTTP_LISTEN: "127.0.0.1:0",
    POSTERN_EXT_AUTH_GRPC_LISTEN: "127.0.0.1:0",
    ...env,
  });
  return {
    ...{ app, records, redis, gate },
    appPort: Number(new URL(app.url).port),
    authorizePort: gate.extAuth.authorize,
    grpcPort: gate.extAuth.grpc,
    close: async () => {
      clearInterval(beat);
      await gate.process.stop();
      await app.close();
      await edge.close();
      await redis.stop();
    },
  };
}

/** Returns a file of `examples/gateways` with replaced addresses. Throws if it lacks a replaced text. */
export async function exampleWith(name: string, replaced: Readonly<Record<string, string>>): Promise<string> {
  let text = await readFile(join(EXAMPLES, name), "utf8");
  for (const [from, to] of Object.entries(replaced)) {
    if (!text.includes(from)) throw new Error(`${name} does not contain ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}
