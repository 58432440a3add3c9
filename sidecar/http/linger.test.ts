import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { aRule, openGate, readAll, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

let gate: TestGate;
afterEach(() => gate.close());

test.each([
  { response: "a refusal", path: "/closed", says: "HTTP/1.1 401 " },
  { response: "an app's early answer", path: "/open", says: "HTTP/1.1 403 " },
])("$answer reaches a client that requested close and is still uploading", async ({ path, says }) => {
  const app = await startApp((_req, res) => res.writeHead(403).end("no"));
  gate = await openGate({ app, policy: { rules: [aRule({ path: { prefix: "/open" }, access: "Anonymous" })] } });
  const client = connect(gate.port, "127.0.0.1");
  const errors: unknown[] = [];
  client.on("error", (error) => errors.push(error));
  client.pause();
  const head = ["Host: a", "Connection: close", "Transfer-Encoding: chunked"].join("\r\n");
  client.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n5\r\nfirst\r\n`);
  await waitFor("the answer to be on its way", async () =>
    (await gate.metrics()).includes("postern_sidecar_in_flight 0"),
  );
  // Data that arrives at a closed socket makes it respond with a reset.
  for (let piece = 0; piece < 3; piece++) {
    await sleep(50);
    client.write("5\r\nagain\r\n");
  }
  client.write("0\r\n\r\n");
  await sleep(50);
  const read = readAll(client);
  client.resume();
  await once(client, "close");
  expect(errors).toEqual([]);
  expect(read().startsWith(says)).toBe(true);
});

test("gate closes a connection whose discarded body never ends", async () => {
  gate = await openGate();
  const client = connect(gate.port, "127.0.0.1");
  const read = readAll(client);
  client.write("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nsome");
  await once(client, "close");
  expect(read()).toMatch(/^HTTP\/1\.1 401 /);
});
