import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { type Line, openLine } from "../../test/faults/line.ts";
import { KUBERNETES_START_MS, startKubernetes } from "../../test/harness/kubernetes.ts";
import { waitFor } from "../../test/harness/wait.ts";
import type { ClusterAccess, SignIn } from "./cluster-access.ts";
import { createKubeClient, type OpenKubeClient } from "./kube-client.ts";
import { readKubeconfig } from "./kubeconfig.ts";

const closers: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function openClient(access: ClusterAccess): OpenKubeClient {
  const client = createKubeClient(access);
  closers.push(() => client.close());
  return client;
}

/** Returns a client of the real API server through a proxy that counts connections. */
async function overLine(change: (signIn: SignIn) => SignIn = (signIn) => signIn): Promise<{
  line: Line;
  client: OpenKubeClient;
}> {
  const { access } = await readKubeconfig((await startKubernetes()).kubeconfigPath, {});
  const line = await openLine(access.server);
  closers.push(() => line.close());
  const client = openClient({ ...access, server: line.url, signIn: async () => change(await access.signIn()) });
  return { line, client };
}

/** Watches namespaces until aborted and appends to `events`. */
function startWatch(client: OpenKubeClient) {
  const stop = new AbortController();
  const events: string[] = [];
  const ended = (async () => {
    const query = { resourceVersion: "0", allowWatchBookmarks: "true" };
    const asked = { path: "/api/v1/namespaces", query, silenceMs: 60_000, signal: stop.signal };
    for await (const { type } of client.watch(asked)) events.push(type);
  })().catch(() => undefined);
  closers.push(async () => {
    stop.abort();
    await ended;
  });
  return { events, stop: () => stop.abort(), ended };
}

const getNamespaces = { method: "GET", path: "/api/v1/namespaces", query: { limit: "1" } } as const;

test(
  "two Kubernetes API connections carry 100 requests and 12 watches",
  async () => {
    const { line, client } = await overLine();
    const watches = Array.from({ length: 12 }, () => startWatch(client));
    await waitFor("all watches to begin", () => watches.every(({ events }) => events.length > 0));
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 25 }, () => client.send(getNamespaces)));
    }
    expect(line.opened).toBe(2);
    // Ended watches release their connection slots.
    for (const { stop } of watches) stop();
    await Promise.all(watches.map(({ ended }) => ended));
    const again = startWatch(client);
    await waitFor("another watch", () => again.events.length > 0);
    expect(line.opened).toBe(2);
  },
  KUBERNETES_START_MS,
);

test(
  "Kubernetes API connection is replaced after a request times out",
  async () => {
    const { line, client } = await overLine();
    const quick = { ...getNamespaces, deadlineMs: 500 };
    await client.send(getNamespaces);
    line.hang();
    await expect(client.send(quick)).rejects.toThrow();
    // A ping with a timeout of one second detects the dead connection.
    await waitFor("a request on another connection", async () => await client.send(quick), {
      everyMs: 100,
    });
    expect(line.opened).toBe(2);
  },
  KUBERNETES_START_MS,
);

test(
  "new client certificate opens a new Kubernetes API connection while watches continue",
  async () => {
    let ca: string | undefined;
    const { line, client } = await overLine((signIn) => ({
      ...signIn,
      tls: { ...signIn.tls, ca: ca ?? signIn.tls.ca },
    }));
    await client.send(getNamespaces);
    const watch = startWatch(client);
    await waitFor("the watch to begin", () => watch.events.length > 0);
    const { access } = await readKubeconfig((await startKubernetes()).kubeconfigPath, {});
    ca = `${(await access.signIn()).tls.ca}\n`;
    await client.send(getNamespaces);
    await client.send(getNamespaces);
    expect(line.opened).toBe(3);
    let isOver = false;
    void watch.ended.then(() => {
      isOver = true;
    });
    await sleep(50);
    expect(isOver).toBe(false);
  },
  KUBERNETES_START_MS,
);

test("Kubernetes API requests over HTTP/1.1 share four connections, regardless of the number of watches", async () => {
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    if (request.url?.includes("watch=true")) response.write(`${JSON.stringify({ type: "BOOKMARK", object: {} })}\n`);
    else response.end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const line = await openLine(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  closers.push(() => line.close());
  const client = openClient({
    server: line.url,
    signIn: async () => ({ headers: {}, tls: {} }),
    forget: () => undefined,
  });
  const watches = Array.from({ length: 12 }, () => startWatch(client));
  await waitFor("all watches to begin", () => watches.every(({ events }) => events.length > 0));
  await Promise.all(Array.from({ length: 40 }, () => client.send(getNamespaces)));
  expect(line.openMax).toBe(12 + 4);
});

test("rejected Kubernetes API credentials are loaded again", async () => {
  const { access } = await readKubeconfig((await startKubernetes()).kubeconfigPath, {});
  let isStale = true;
  const client = openClient({
    ...access,
    signIn: async () => {
      const { headers, tls } = await access.signIn();
      return { headers: isStale ? { authorization: "Bearer stale" } : headers, tls };
    },
    forget: () => {
      isStale = false;
    },
  });
  await expect(client.send(getNamespaces)).rejects.toMatchObject({ status: 401 });
  await client.send(getNamespaces);
});
