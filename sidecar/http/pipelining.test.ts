import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { aRule, call, openGate, readAll, sendRaw, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/*
 * Clients that send the next request before they have the response to the last (RFC 9112, 9.3.2). No key is needed for
 * that where a rule is Anonymous, so none of it may cost the gate or the app more than one request at a time would.
 */

let gate: TestGate;
afterEach(() => gate.close());

/** A gate that asks for no key, and an app that answers when it is told to. */
async function openSlowly(): Promise<ServerResponse[]> {
  const asked: ServerResponse[] = [];
  const app = await startApp((_req, res) => void asked.push(res));
  gate = await openGate({ app, policy: { rules: [aRule({ access: "Anonymous" })] } });
  return asked;
}

const get = (path: string, ...headers: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, "Host: a", ...headers].join("\r\n")}\r\n\r\n`;

describe("pipelined requests", () => {
  test("reach the app one after another, and are answered in order", async () => {
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

  test("are limited in number", async () => {
    const asked = await openSlowly();
    const { text } = await sendRaw(gate.port, get("/flood").repeat(5_000));
    expect(text).toBe("");
    expect(asked.length).toBeLessThanOrEqual(1);
  });

  test.each([
    { name: "an upgrade", next: get("/", "Connection: Upgrade", "Upgrade: websocket") },
    { name: "a CONNECT", next: "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n" },
  ])("may not end in $name: the connection is closed, and the gate still works", async ({ next }) => {
    const asked = await openSlowly();
    const { text } = await sendRaw(gate.port, get("/slow"), next);
    expect(text).toBe("");
    const later = call(gate.port, { path: "/later" });
    await waitFor("the app to be asked again", () => asked.some(({ req }) => req.url === "/later"));
    for (const res of asked) res.end("still here");
    expect((await later).body).toBe("still here");
  });
});
