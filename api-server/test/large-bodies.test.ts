import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
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

interface Upload {
  /** Ends the body, and returns the status line of the response. */
  end(): Promise<string>;
}

/** Sends a body in pieces of a MiB, and leaves its end out. */
async function upload(headers: readonly string[], bytes: number): Promise<Upload> {
  const client = connect({ host: "127.0.0.1", port });
  const answered = once(client, "data") as Promise<[Buffer]>;
  client.on("error", () => {});
  client.write("POST /v2/apis.createApi HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
  client.write([...headers, "Transfer-Encoding: chunked", "", ""].join("\r\n"));
  for (let sent = 0; sent < bytes; sent += MIB) {
    client.write(`${MIB.toString(16)}\r\n${"x".repeat(MIB)}\r\n`);
    if (client.writableNeedDrain) await Promise.race([once(client, "drain"), answered]);
  }
  return {
    async end() {
      client.write("0\r\n\r\n");
      const [head] = await answered;
      client.destroy();
      return String(head).split("\r\n", 1)[0] ?? "";
    },
  };
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Bytes in buffers that are still needed. */
function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

test.each([
  { name: "without a header", headers: [], status: "401 Unauthorized" },
  { name: "of an unknown root key", headers: ["Authorization: Bearer nobody"], status: "401 Unauthorized" },
])("eight megabytes $name are refused at their end, and not kept until then", async ({ headers, status }) => {
  const before = heldBytes();
  const uploads = await Promise.all(Array.from({ length: 10 }, () => upload(headers, 8 * MIB)));
  await waitFor("nothing to be held but beginnings", async () => heldBytes() - before < 20 * MIB);
  const answers = await Promise.all(uploads.map((each) => each.end()));
  expect(new Set(answers)).toEqual(new Set([`HTTP/1.1 ${status}`]));
});

test("more than ten megabytes are 413 also for a stranger", async () => {
  const { end } = await upload(["Authorization: Bearer nobody"], 11 * MIB);
  expect(await end()).toBe("HTTP/1.1 413 Payload Too Large");
});

test("a root key's are read to their end", async () => {
  const { end } = await upload([`Authorization: Bearer ${t.rootKey}`], 8 * MIB);
  expect(await end()).toBe("HTTP/1.1 400 Bad Request");
});
