import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/* Clients that read their responses slowly or never. `direct-front.test.ts` covers the hot procedures. */

/** Long enough for a slow machine to read twice within it. */
const READ_MS = 1_500;
/** Responses of about 700 KB each exceed the kernel buffers. */
const REQUESTS = 60;
const REQUEST = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n";

const folder = openCertificateFolder();
const certificate = folder.make("api");
afterAll(() => folder.remove());

describe.each([{ isTls: false }, { isTls: true }])("by TLS: $isTls", ({ isTls }) => {
  let t: TestApp;
  let client: Socket | undefined;
  beforeAll(async () => {
    t = await buildTestApp({ readTimeoutMs: READ_MS, certificate: isTls ? certificate : undefined });
    await t.app.listen({ host: "127.0.0.1", port: 0 });
  });
  afterEach(() => client?.destroy());
  afterAll(() => t.close());

  function open(): Socket {
    const address = { host: "127.0.0.1", port: (t.app.server.address() as AddressInfo).port };
    client = isTls ? connectTls({ ...address, ca: certificate.cert }) : connect(address);
    return client.on("error", () => undefined);
  }

  const openConnections = () =>
    new Promise<number>((resolve, reject) =>
      t.app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
    );

  test("connection of a client that never reads its responses is closed", async () => {
    open().write(REQUEST.repeat(REQUESTS));
    await waitFor("the connection", async () => (await openConnections()) === 1);
    await waitFor("its end", async () => (await openConnections()) === 0, { deadlineMs: 60_000 });
  }, 90_000);

  test("client that reads its responses slowly receives all of them", async () => {
    const socket = open();
    let unread = 0;
    let responses = 0;
    let tail = "";
    const startedMs = performance.now();
    socket.write(REQUEST.repeat(REQUESTS - 1) + REQUEST.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      const text = tail + chunk.toString("latin1");
      responses += text.split("HTTP/1.1 200").length - 1;
      tail = text.slice(-11);
      unread += chunk.length;
      if (unread < 2_000_000) continue;
      unread = 0;
      await sleep(READ_MS / 4);
    }
    expect(responses).toBe(REQUESTS);
    expect(performance.now() - startedMs).toBeGreaterThan(3 * READ_MS);
  }, 90_000);
});
