import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { openRedisEdge } from "../../edge/open.ts";
import { aPolicy, call, OPEN, POLICY, Records, WORKSPACE } from "../harness/gate.ts";
import { freePort } from "../harness/ports.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { createTestRedis } from "../harness/redis.ts";
import { type SidecarProcess, spawnSidecar } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { type Replica, startBalancer } from "./balancer.ts";

/*
 * Pods are replaced while clients with kept connections send requests through a balancer that follows readiness. A pod is an app that exits
 * immediately at SIGTERM, and its gate.
 */

const DRAIN_S = 1;
const HOOK_TOKEN = "a token of this pod";
const RESTARTS = 10;
const APP = `
const server = require("node:http").createServer((req, res) => setTimeout(() => res.end("ok"), 3));
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[1]), "127.0.0.1", () => console.log("listening"));
`;

interface Pod extends Replica {
  readonly app: RunningProcess;
  readonly gate: SidecarProcess;
}

async function startPod(env: Record<string, string>): Promise<Pod> {
  const appPort = await freePort();
  const app = await startProcess(process.execPath, ["-e", APP, String(appPort)], { readyLine: /listening/ });
  onTestFinished(async () => void (await app.stop()));
  const gate = await spawnSidecar({
    ...env,
    POSTERN_UPSTREAM: `http://127.0.0.1:${appPort}`,
    POSTERN_DRAIN_TIMEOUT: `${DRAIN_S}s`,
    POSTERN_HOOK_TOKEN: HOOK_TOKEN,
  });
  onTestFinished(async () => void (await gate.process.stop()));
  return { app, gate, port: gate.port, adminPort: gate.adminPort };
}

/** Termination by kubelet with a native sidecar: hooks of all containers concurrently, then the app, then the gate. */
async function endAsNative({ app, gate }: Pod): Promise<void> {
  const hook = call(gate.adminPort, { path: "/drain", headers: { "Postern-Hook-Token": HOOK_TOKEN } });
  const preStopOfApp = sleep(DRAIN_S * 1000 + 500);
  await Promise.all([hook, preStopOfApp]);
  await app.stop();
  expect(await gate.process.stop()).toEqual({ code: 0, signal: null });
}

/** Termination with a regular container: the gate gets its signal during the app's hook. */
async function endAsBeside({ app, gate }: Pod): Promise<void> {
  const stopped = gate.process.stop();
  await sleep(DRAIN_S * 1000 + 500);
  await app.stop();
  expect(await stopped).toEqual({ code: 0, signal: null });
}

/** Starts a client that sends consecutive requests on one kept connection until stopped. */
function keepAsking(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const outcomes = new Map<string, number>();
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      const outcome = await ask(port, agent).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      await sleep(5);
    }
    agent.destroy();
  };
  const running = run();
  return {
    outcomes,
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
}

async function ask(port: number, agent: Agent): Promise<string> {
  const req = request({ host: "127.0.0.1", port, agent }).end();
  const [res] = (await once(req, "response")) as [IncomingMessage];
  for await (const _ of res);
  return String(res.statusCode);
}

test(`no request fails while pods are replaced ${RESTARTS} times under traffic`, async () => {
  const redis = await createTestRedis();
  onTestFinished(() => redis.close());
  const prefix = redis.prefix.replace(/:$/, "");
  const edge = await openRedisEdge({ url: redis.url, prefix, clientName: "test-relay" });
  onTestFinished(() => edge.close());
  const records = new Records(edge);
  await records.begin();
  await records.putPolicy(aPolicy(OPEN.policy));
  await records.complete();
  const beat = setInterval(() => void records.heartbeat().catch(() => undefined), 500);
  onTestFinished(() => clearInterval(beat));
  const env = {
    REDIS_URL: redis.url,
    POSTERN_REDIS_PREFIX: prefix,
    POSTERN_WORKSPACE: WORKSPACE,
    POSTERN_POLICY: POLICY,
  };

  const balancer = await startBalancer();
  onTestFinished(() => balancer.close());
  const pods = [await startPod(env), await startPod(env)];
  const join = async (pod: Pod) => {
    balancer.add(pod);
    await waitFor("the pod to be ready", () => balancer.isReady(pod));
  };
  for (const pod of pods) await join(pod);
  const clients = Array.from({ length: 8 }, () => keepAsking(balancer.port));
  const asked = () => clients.reduce((sum, { outcomes }) => sum + [...outcomes.values()].reduce((a, b) => a + b, 0), 0);
  for (let restart = 0; restart < RESTARTS; restart++) {
    const before = asked();
    const fresh = await startPod(env);
    await join(fresh);
    pods.push(fresh);
    const old = pods.shift();
    if (old === undefined) throw new Error("there is no pod");
    await (restart % 2 === 0 ? endAsNative(old) : endAsBeside(old));
    expect(balancer.isReady(old)).toBe(false);
    balancer.remove(old);
    await waitFor("requests after it", () => asked() > before + 50);
  }
  await Promise.all(clients.map((client) => client.stop()));
  const all = clients.flatMap(({ outcomes }) => [...outcomes.keys()]);
  const failed = clients.map(({ outcomes }) => Object.fromEntries(outcomes));
  expect(new Set(all), JSON.stringify(failed)).toEqual(new Set(["200"]));
  expect(asked()).toBeGreaterThan(RESTARTS * 50);
  console.log(`${asked()} requests`);
});
