import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { aRule, openGate, readAll, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/*
 * Clients that send the next request before the response to the previous one (RFC 9112, 9.3.2). A rule with Anonymous access requires no
 * key for that, so pipelining must cost the gate and the app no more than one request at a time.
 */

const MiB = 1024 * 1024;

let gate: TestGate;
afterEach(() => gate.close());

/** Opens a gate that requires no key, and an app that responds when the test makes it. */
async function openSlowly(): Promise<ServerResponse[]> {
  const asked: ServerResponse[] = [];
  const app = await startApp((_req, res) => void asked.push(res));
  gate = await openGate({ app, policy: { rules: [aRule({ access: "Anonymous" })] } });
  return asked;
}

const get = (path: string, ...headers: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, "Host: a", ...headers].join("\r\n")}\r\n\r\n`;

describe("pipelined requests", () => {
  test("gate forwards pipelined requests one at a time and responds in order", async () => {
    const asked = await openSlowly();
    const client = connect({ host: "127.0.0.1", port: gate.port });
    const read = readAll(client);
    client.write(get("/1") + get("/2") + get("/3"));
    for (const n of [1, 2, 3]) {
      await waitFor(`the app to be asked for ${n}`, () => asked.length === n);
      expect(asked[n - 1]?.req.url).toBe(`/${n}`);
      asked[n - 1]?.end(`answer ${n}`);
      await waitFor(`answer ${n}`, () => read().includes(`answer ${n}`));
    }
    client.destroy();
  });

  test("gate stops reading pipelined requests when its buffer is full", async () => {
    const asked = await openSlowly();
    const client = connect({ host: "127.0.0.1", port: gate.port });
    const read = readAll(client);
    const flood = Buffer.from(get("/flood").repeat(2_000));
    let taken = 0;
    const pour = (): void => {
      while (taken < 256 * MiB && client.write(flood)) taken += flood.length;
    };
    client.on("drain", pour);
    pour();
    let last = -1;
    await waitFor(
      "the client to be paused",
      () => {
        const isStill = taken > 0 && taken === last;
        last = taken;
        return isStill;
      },
      { everyMs: 250 },
    );
    // The capacity of the buffers of two sockets.
    expect(taken).toBeLessThan(64 * MiB);
    expect(read()).toBe("");
    expect(asked).toHaveLength(1);
    client.destroy();
  });

  test("a pipelined upgrade request is handled in order", async () => {
    const asked = await openSlowly();
    const client = connect({ host: "127.0.0.1", port: gate.port });
    const read = readAll(client);
    client.write(get("/slow") + get("/chat", "Connection: Upgrade", "Upgrade: websocket"));
    await waitFor("the app to be asked", () => asked.length === 1);
    asked[0]?.end("first");
    await waitFor("the app to be asked for an upgrade", () => asked[1]?.req.headers.upgrade === "websocket");
    asked[1]?.end("declined");
    await once(client, "close");
    expect(read()).toMatch(/first[\s\S]*declined/);
  });

  test("gate rejects a pipelined CONNECT request in order", async () => {
    const asked = await openSlowly();
    const client = connect({ host: "127.0.0.1", port: gate.port });
    const read = readAll(client);
    client.write(`${get("/slow")}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`);
    await waitFor("the app to be asked", () => asked.length === 1);
    expect(read()).toBe("");
    asked[0]?.end("first");
    await once(client, "close");
    expect(read()).toMatch(/^HTTP\/1\.1 200 [\s\S]*first[\s\S]*HTTP\/1\.1 400 /);
    expect(asked).toHaveLength(1);
  });
});
