import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { createKubeClient, type KubeObject } from "./kube-client.ts";
import { type Change, type ListWatch, startListWatch } from "./list-watch.ts";

/*
 * Failures that a real API server does not produce on demand: failing lists, expired resourceVersions and silent watches. test/e2e tests
 * the normal behavior on a real API server.
 */

const closers: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Script = { list?: object; status?: number; watch?: object[]; hold?: boolean };

const object = (name: string, resourceVersion: number, uid = name): KubeObject => ({
  metadata: {
    name,
    namespace: "shop",
    uid,
    resourceVersion: String(resourceVersion),
    creationTimestamp: "2026-01-01T00:00:00Z",
  },
});
const list = (resourceVersion: number, items: KubeObject[], next?: string) => ({
  list: { metadata: { resourceVersion: String(resourceVersion), ...(next ? { continue: next } : {}) }, items },
});
const event = (type: string, of: unknown) => ({ type, object: of });

/** Starts an HTTP server that responds by the script in order and records request URLs. */
async function follow(script: Script[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "", "http://it");
    const what = searchParams.has("watch") ? `watch from ${searchParams.get("resourceVersion")}` : "list";
    asked.push(searchParams.has("continue") ? `${what} on` : what);
    const { list: body, status = 200, watch = [], hold = false } = script[asked.length - 1] ?? { hold: true };
    response.writeHead(status, { "content-type": "application/json" });
    const text = body ?? (status === 200 ? undefined : { reason: "Scripted", message: "as the test wants it" });
    for (const one of watch) response.write(`${JSON.stringify(one)}\n`);
    response.flushHeaders();
    if (text !== undefined || !hold) response.end(text === undefined ? "" : JSON.stringify(text));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const clock = { ms: 0 };
  const client = createKubeClient(
    {
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      signIn: async () => ({ headers: {}, tls: {} }),
      forget: () => undefined,
    },
    { monotonicMs: () => clock.ms },
  );
  closers.push(() => client.close());
  const changes: string[] = [];
  const describe = ({ before, after }: Change) =>
    `${before === undefined ? "+" : after === undefined ? "-" : "~"}${(after ?? before)?.metadata.name}`;
  const watching: ListWatch = startListWatch({
    client,
    path: "/apis/test/v1/things",
    onChange: (change) => changes.push(describe(change)),
    log: pino({ level: "silent" }),
    silenceMs: 400,
  });
  const state = () => client.watches.states()[0];
  closers.push(() => watching.close());
  const until = (count: number) => waitFor(`${count} requests`, () => asked.length >= count);
  return { watching, asked, changes, until, clock, state };
}

test("list-watch joins pages of a list and watches from its resourceVersion", async () => {
  const { watching, asked, changes, until } = await follow([
    list(5, [object("a", 1)], "more"),
    list(5, [object("b", 2)]),
  ]);
  await until(3);
  expect(asked).toEqual(["list", "list on", "watch from 5"]);
  expect(changes).toEqual(["+a", "+b"]);
  expect(watching.get("shop", "a")?.metadata.name).toBe("a");
});

test("list-watch restarts a list that fails between two pages", async () => {
  const { asked, changes, until } = await follow([
    list(5, [object("a", 1)], "more"),
    { status: 500 },
    list(6, [object("a", 1), object("b", 2)]),
  ]);
  await until(4);
  expect(asked).toEqual(["list", "list on", "list", "watch from 6"]);
  expect(changes).toEqual(["+a", "+b"]);
});

test("list-watch resumes an ended or silent watch from the last event or bookmark", async () => {
  const { asked, changes, until } = await follow([
    list(5, [object("a", 1)]),
    { watch: [event("MODIFIED", object("a", 7))] },
    { watch: [event("BOOKMARK", { metadata: { resourceVersion: "9" } })], hold: true },
  ]);
  await until(4);
  expect(asked).toEqual(["list", "watch from 5", "watch from 7", "watch from 9"]);
  expect(changes).toEqual(["+a", "~a"]);
});

test.each([
  { name: "an event says so", script: { watch: [event("ERROR", { code: 410, reason: "Expired" })] } },
  { name: "the answer says so", script: { status: 410 } },
])("list-watch relists and reports deletions when its version is too old: $name", async ({ script }) => {
  const { watching, asked, changes, until } = await follow([
    list(5, [object("a", 1), object("b", 2)]),
    script,
    list(9, [object("b", 2), object("c", 8)]),
  ]);
  await until(4);
  expect(asked).toEqual(["list", "watch from 5", "list", "watch from 9"]);
  expect(changes).toEqual(["+a", "+b", "-a", "+c"]);
  expect(watching.list()).toHaveLength(2);
});

test("list-watch ignores older events that would undo a local write or delete a new object", async () => {
  const { watching, changes, until } = await follow([
    list(5, [object("a", 1), object("b", 2, "new")]),
    { watch: [event("MODIFIED", object("a", 6)), event("DELETED", object("b", 7, "old"))] },
  ]);
  await watching.listed;
  watching.put(object("a", 8));
  await until(3);
  expect(watching.get("shop", "a")?.metadata.resourceVersion).toBe("8");
  expect(watching.get("shop", "b")?.metadata.uid).toBe("new");
  expect(changes).toEqual(["+a", "+b", "~a"]);
});

test("list-watch reports the age of open watches and removes closed ones", async () => {
  const { watching, until, clock, state } = await follow([
    list(5, []),
    { watch: [event("BOOKMARK", { metadata: { resourceVersion: "9" } })], hold: true },
  ]);
  await until(2);
  expect(state()).toMatchObject({ resource: "things", namespace: undefined, ageMs: 0, failure: undefined });
  clock.ms = 60_000;
  // The watch stays silent and is opened again.
  await until(3);
  await waitFor("it to be heard of", () => state()?.ageMs === 0);
  await watching.close();
  expect(state()).toBeUndefined();
});

test("failing list-watch reports its age and its error until it recovers", async () => {
  const { until, clock, state } = await follow([list(5, []), { status: 403 }, { status: 403 }, { hold: true }]);
  await until(2);
  clock.ms = 1_000;
  await until(3);
  expect(state()).toMatchObject({ ageMs: 1_000, failure: expect.objectContaining({ status: 403 }) });
  await waitFor("the watch", () => state()?.failure === undefined);
  expect(state()?.ageMs).toBe(0);
});

test("list-watch reports a rejected initial list as a failure", async () => {
  const { until, state } = await follow([{ status: 403 }, { status: 403 }]);
  await until(2);
  expect(state()).toMatchObject({ ageMs: undefined, failure: expect.objectContaining({ status: 403 }) });
});
