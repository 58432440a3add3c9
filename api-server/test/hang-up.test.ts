import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { buildTestApp, type TestApp } from "./app.ts";

let tested: TestApp;
beforeEach(async () => {
  tested = await buildTestApp();
});
afterEach(() => tested.close());

test("client that disconnects during its request body does not count as a server error in the metrics", async () => {
  await tested.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = tested.app.server.address() as AddressInfo;
  const client = connect({ host: "127.0.0.1", port });
  await once(client, "connect");
  const arrived = once(tested.app.server, "request");
  client.write("POST /v2/keys.verifyKey HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{");
  await arrived;
  client.destroy();
  const metrics = async () => (await tested.app.inject({ url: "/metrics" })).body;
  await waitFor("the request to be counted", async () => /keys\.verifyKey".*status="\d+"/.test(await metrics()));
  expect(await metrics()).toMatch(/keys\.verifyKey".*status="400"/);
  expect(tested.logs.filter((line) => line.includes('"level":50'))).toEqual([]);
});
