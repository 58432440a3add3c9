import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestNamespace, KUBERNETES_START_MS, startKubernetes } from "../harness/kubernetes.ts";
import { openObjects } from "../harness/kubernetes-objects.ts";
import type { RunningProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import { applyCrds, openStore, type Store, startElectedOperator, type TestManifest } from "./operator-world.ts";

/* A leader that is frozen in the middle of a call, and wakes after another replica has taken the Lease and changed the same object. */

const LONG = { deadlineMs: 120_000, everyMs: 200 };

let store: Store;
beforeAll(async () => {
  store = await openStore();
});
afterAll(() => store?.close());

interface Held {
  readonly body: string;
  /** Sends the request on, and returns the response of the API. */
  release(): Promise<{ readonly status: number; readonly body: string }>;
}

/** Starts a proxy in front of the API that can hold calls of managed.applyObject. */
async function startProxy(target: string) {
  const held: Held[] = [];
  let isHolding = false;
  const server: Server = createServer(async (incoming, reply) => {
    const body = await text(incoming);
    const forward = () =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        const { method, headers, url = "" } = incoming;
        const outgoing = request(new URL(url, target), { method, headers }, async (response) => {
          const answer = await text(response);
          reply.writeHead(response.statusCode ?? 0, { "content-type": "application/json" }).end(answer);
          resolve({ status: response.statusCode ?? 0, body: answer });
        });
        outgoing.on("error", reject).end(body);
      });
    if (isHolding && incoming.url?.endsWith("managed.applyObject")) held.push({ body, release: forward });
    else await forward().catch(() => reply.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    hold: () => {
      isHolding = true;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

test(
  "call of a frozen leader that arrives after another leader's call is refused with 409",
  async () => {
    const kubernetes = await startKubernetes();
    await applyCrds(kubernetes);
    const { name: namespace, drop } = await createTestNamespace(kubernetes);
    const objects = await openObjects(kubernetes);
    const proxy = await startProxy(store.server.url);
    const started: RunningProcess[] = [];
    const start = async (apiUrl: string) => {
      const { rootKey } = store;
      const operator = await startElectedOperator({ name: "frozen", apiUrl, rootKey, kubernetes, namespace });
      started.push(operator);
      return operator;
    };
    const role = (permission: string): TestManifest => ({
      kind: "Role",
      metadata: { name: "editor", namespace },
      spec: { name: `${namespace}-editor`, permissions: [permission] },
    });
    const stored = async () => {
      const found = await store.server.deps.db.query<{ slug: string }>(
        `select permissions.slug from roles
           join role_permissions on role_permissions.role_id = roles.id
           join permissions on permissions.id = role_permissions.permission_id
          where roles.name = $1`,
        [`${namespace}-editor`],
      );
      return found.rows.map(({ slug }) => slug);
    };
    const observedGeneration = async () => {
      const [found] = await objects.list({ kind: "Role" }, namespace);
      return (found?.status as { observedGeneration?: number } | undefined)?.observedGeneration;
    };
    try {
      const former = await start(proxy.url);
      await waitFor("the first to lead", former.leads, LONG);
      const next = await start(store.server.url);
      await objects.apply(role("first"));
      await waitFor("the role to be stored", async () => (await stored())[0] === "first", LONG);
      proxy.hold();
      await objects.apply(role("former"));
      await waitFor("its call to be on its way", () => proxy.held.length > 0, LONG);
      former.kill("SIGSTOP");
      await objects.apply(role("next"));
      await waitFor("the other to lead", next.leads, LONG);
      await waitFor("its change to be stored", async () => (await stored())[0] === "next", LONG);
      await waitFor("its status", async () => (await observedGeneration()) === 3, LONG);
      const [call] = proxy.held;
      expect(JSON.parse(call?.body ?? "{}")).toMatchObject({ spec: { permissions: ["former"] } });
      const refused = await call?.release();
      expect(refused?.status).toBe(409);
      expect(JSON.parse(refused?.body ?? "{}").error.type).toMatch(/stale_leader$/);
      former.kill("SIGCONT");
      await waitFor("the first to follow", async () => !(await former.leads()), LONG);
      expect(await stored()).toEqual(["next"]);
      expect(await observedGeneration()).toBe(3);
      expect(await next.leads()).toBe(true);
    } finally {
      // A stopped process handles no other signal.
      for (const one of started) one.kill("SIGCONT");
      await Promise.all(started.map((one) => one.stop()));
      await proxy.close();
      await objects.close();
      await drop();
    }
  },
  KUBERNETES_START_MS,
);
