import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { openRedisEdge } from "../../edge/open.ts";
import { startOwnRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

const MAX = 60;

test("api-server keeps serving when another client uses up the Redis connections", async () => {
  const system = await openSystem({ ownRedis: true });
  await system.raw.config("SET", "maxclients", String(MAX));
  const api = await system.spawnApi();
  const limit = { namespace: "n", identifier: "u", limit: 1_000, duration: 3_600_000 };
  const { apiId } = await makeKey(api);
  await waitFor("the api-server to be whole", () => api.isComplete());
  const ours = async (): Promise<string[]> => {
    const clients = ((await system.raw.client("LIST")) as string).split("\n");
    return clients
      .filter((line) => /name=postern-api-server/.test(line))
      .map((line) => /\bid=(\d+)/.exec(line)?.[1] ?? "");
  };
  await api.data("ratelimit.limit", limit);
  const before = await ours();
  expect(before.length).toBeGreaterThanOrEqual(3);
  // Figure used by docs/sizing.md.
  expect(before.length).toBeLessThanOrEqual(6);

  const { port } = system.redis;
  const taken: Socket[] = [];
  onTestFinished(() => taken.forEach((socket) => void socket.destroy()));
  const takeAll = (): void => {
    for (let i = 0; i < MAX; i++) {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined);
      taken.push(socket.on("close", () => void taken.splice(taken.indexOf(socket), 1)));
    }
  };
  takeAll();
  const clientCount = async () => Number(/^connected_clients:(\d+)/m.exec(await system.raw.info("clients"))?.[1] ?? 0);
  await waitFor("no connection to be left", async () => (await clientCount()) >= MAX);
  const late = new Redis(system.redisUrl, { retryStrategy: null, lazyConnect: true });
  late.on("error", () => undefined);
  await expect(late.connect().then(() => late.ping())).rejects.toThrow();

  // Longer than every timeout of an idle connection.
  const until = performance.now() + 7_000;
  let remaining = 1_000;
  while (performance.now() < until) {
    const response = await api.data("ratelimit.limit", limit);
    // Counted in Redis: a local count would restart.
    expect(response.remaining).toBeLessThan(remaining);
    remaining = response.remaining;
    await sleep(100);
  }
  expect(await ours()).toEqual(before);
  expect(await api.isComplete()).toBe(true);
  const { key } = await api.data("keys.createKey", { apiId });
  expect(await api.code(key)).toBe("VALID");

  for (const socket of [...taken]) socket.destroy();
  await waitFor("connections to be free", async () => (await clientCount()) < MAX);
  expect(await ours()).toEqual(before);
}, 60_000);

test("api-server started without Redis connections serves and counts in Redis later", async () => {
  const system = await openSystem({ ownRedis: true });
  await system.raw.config("SET", "maxclients", "20");
  const sockets = Array.from({ length: 40 }, () =>
    connect(system.redis.port, "127.0.0.1").on("error", () => undefined),
  );
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  await waitFor("no connection to be left", async () =>
    /^connected_clients:(19|20)/m.test(await system.raw.info("clients")),
  );
  const api = await system.spawnApi();
  expect(await api.isReady()).toBe(true);
  await waitFor("it to say so", async () => (await api.degradations()).includes("redis_unavailable"));
  for (const socket of sockets) socket.destroy();
  await waitFor("it to be whole", () => api.isComplete());
}, 60_000);

test("api-server reports Redis connections as a fraction of the connection limit", async () => {
  const [events, system] = [
    await startOwnRedis({ args: ["--maxclients", "10"] }),
    await openSystem({ ownRedis: true }),
  ];
  onTestFinished(() => events.stop());
  await system.raw.config("SET", "maxclients", "200");
  const edge = system.closing(
    await openRedisEdge({ url: system.redisUrl, eventsUrl: events.url, clientName: "test-api" }),
  );
  const { connectionRatio = 0 } = await edge.info();
  // One of ten connections there, at most five of 200 here.
  expect(connectionRatio).toBeCloseTo(0.1, 5);
});
