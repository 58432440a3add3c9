import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memoryInUse } from "../../test/harness/memory-in-use.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { buildTestApp, type TestApp } from "./app.ts";

let t: TestApp;
let port: number;
beforeAll(async () => {
  t = await buildTestApp();
  await t.app.listen({ host: "127.0.0.1", port: 0 });
  ({ port } = t.app.server.address() as AddressInfo);
});
afterAll(() => t.close());

const MIB = 1_048_576;
/** Data that the server has not read by then is never read. */
const BLOCKED_MS = 500;

interface Upload {
  /** Sends the end of the body and returns the status line of the response. */
  end(): Promise<string>;
  abort(): void;
}

/** Sends a body in chunks of 1 MiB without its end. */
async function upload(headers: readonly string[], bytes: number): Promise<Upload> {
  const client = connect({ host: "127.0.0.1", port });
  const answered = once(client, "data") as Promise<[Buffer]>;
  client.on("error", () => {});
  client.write("POST /v2/apis.createApi HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
  client.write([...headers, "Transfer-Encoding: chunked", "", ""].join("\r\n"));
  for (let sent = 0; sent < bytes; sent += MIB) {
    client.write(`${MIB.toString(16)}\r\n${"x".repeat(MIB)}\r\n`);
    if (client.writableNeedDrain) await Promise.race([once(client, "drain"), answered, sleep(BLOCKED_MS)]);
  }
  return {
    async end() {
      client.write("0\r\n\r\n");
      const [head] = await answered;
      client.destroy();
      return String(head).split("\r\n", 1)[0] ?? "";
    },
    abort: () => client.resetAndDestroy(),
  };
}

test.each([
  { name: "without a header", headers: [], status: "401 Unauthorized" },
  { name: "of an unknown root key", headers: ["Authorization: Bearer nobody"], status: "401 Unauthorized" },
])("8 MB request body $name is rejected after it has arrived, without being buffered", async ({ headers, status }) => {
  const before = memoryInUse().arrayBuffers;
  const uploads = await Promise.all(Array.from({ length: 10 }, () => upload(headers, 8 * MIB)));
  await waitFor("nothing to be held but beginnings", async () => memoryInUse().arrayBuffers - before < 20 * MIB);
  const responses = await Promise.all(uploads.map((each) => each.end()));
  expect(new Set(responses)).toEqual(new Set([`HTTP/1.1 ${status}`]));
});

test("body above 10 MB gets 413 even without authentication", async () => {
  const { end } = await upload(["Authorization: Bearer nobody"], 11 * MIB);
  expect(await end()).toBe("HTTP/1.1 413 Payload Too Large");
});

test("large body with a valid root key is read completely", async () => {
  const { end } = await upload([`Authorization: Bearer ${t.rootKey}`], 8 * MIB);
  expect(await end()).toBe("HTTP/1.1 400 Bad Request");
});

test("large bodies are read two at a time per workspace without delaying others", async () => {
  const other = await t.makeWorkspace();
  const mine = [`Authorization: Bearer ${t.rootKey}`];
  const first = await Promise.all([1, 2].map(() => upload(mine, MIB)));
  const before = memoryInUse().arrayBuffers;
  const waiting = await upload(mine, MIB);
  const theirs = await upload([`Authorization: Bearer ${other.rootKey}`], 8 * MIB);
  expect(await theirs.end()).toBe("HTTP/1.1 400 Bad Request");
  await waitFor("nothing to be held but a beginning", async () => memoryInUse().arrayBuffers - before < MIB);
  const late = waiting.end();
  for (const { end } of first) expect(await end()).toBe("HTTP/1.1 400 Bad Request");
  expect(await late).toBe("HTTP/1.1 400 Bad Request");
});

test("client that disconnects during its large body releases the slot", async () => {
  const mine = [`Authorization: Bearer ${t.rootKey}`];
  for (let i = 0; i < 4; i++) (await upload(mine, MIB)).abort();
  const reading = await Promise.all([1, 2].map(() => upload(mine, MIB)));
  const waiting = await Promise.all([1, 2, 3, 4].map(() => upload(mine, MIB)));
  for (const { abort } of waiting) abort();
  for (const { end } of reading) expect(await end()).toBe("HTTP/1.1 400 Bad Request");
  for (let i = 0; i < 3; i++) {
    const later = await Promise.all([1, 2].map(() => upload(mine, MIB)));
    for (const { end } of later) expect(await end()).toBe("HTTP/1.1 400 Bad Request");
  }
});

const values = (count: number) => `{"name":"many","list":[${Array.from({ length: count - 3 }, () => 0).join(",")}]}`;

test.each([
  { path: "apis.createApi", count: 2_500, rootKey: "nobody", status: 400, text: "not a known field" },
  { path: "apis.createApi", count: 2_501, rootKey: "nobody", status: 401, text: "root key" },
  { path: "apis.createApi", count: 250_000, rootKey: undefined, status: 400, text: "not a known field" },
  { path: "apis.createApi", count: 250_001, rootKey: undefined, status: 400, text: "at most 250,000" },
  { path: "apis.noSuchProcedure", count: 2_501, rootKey: undefined, status: 404, text: "This path does not exist" },
  { path: "v1/apis.createApi", count: 250_000, rootKey: undefined, status: 200, text: "apiId" },
  { path: "v1/apis.createApi", count: 250_001, rootKey: undefined, status: 400, text: "at most 250,000" },
  { path: "v1/keys.verifyKey", count: 2_501, rootKey: null, status: 400, text: "at most 2,500" },
])("body of $count values to $path gets status $status", async ({ path, count, rootKey, status, text }) => {
  const reply = await t.call(path, values(count), rootKey === undefined ? {} : { rootKey });
  expect([reply.status, JSON.stringify(reply.body)]).toEqual([status, expect.stringContaining(text)]);
});

test("rejected values are not retained in memory", async () => {
  const before = process.memoryUsage().heapUsed;
  for (const path of ["apis.getApi", "apis.deleteApi", "keys.getKey", "keys.deleteKey", "permissions.getRole"]) {
    expect((await t.call(path, `[${"{},".repeat(120_000)}0]`)).status).toBe(400);
  }
  // The values of each body alone take 8 MB.
  expect(memoryInUse().heapUsed - before).toBeLessThan(8_000_000);
});
