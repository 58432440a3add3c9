import { once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type GateOptions, OPEN, openGate, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/* Idle limits of responses, server-sent events and WebSockets. */

const SHORT_MS = 200;
/** Several intervals of the gate's stall checks. */
const LONG_MS = 1_500;

let gate: TestGate;
let sockets: WebSocketServer | undefined;
afterEach(async () => {
  for (const client of sockets?.clients ?? []) client.terminate();
  sockets?.close();
  sockets = undefined;
  await gate.close();
});

/** Opens a response of this type that has begun and then pauses. */
async function openPausing(
  type: string,
  timeouts: GateOptions["timeouts"] & {},
): Promise<{ app: ServerResponse; response: IncomingMessage }> {
  const begun = Promise.withResolvers<ServerResponse>();
  const app = await startApp((_req, res) => {
    res.writeHead(200, { "Content-Type": type });
    res.write("data: 1\n\n");
    begun.resolve(res);
  });
  gate = await openGate({ ...OPEN, app, timeouts });
  const asked = request({ port: gate.port, host: "127.0.0.1", agent: false }).end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return { app: await begun.promise, response };
}

const textOf = async (response: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const piece of response) text += piece;
  return text;
};

describe("a response that pauses", () => {
  test("paused response is aborted after the upstream idle timeout", async () => {
    const { response } = await openPausing("text/plain", { bodyIdleMs: SHORT_MS, eventsIdleMs: 60_000 });
    await expect(textOf(response)).rejects.toThrow();
  });

  test.each(["text/event-stream", "Text/Event-Stream; charset=utf-8"])(
    "paused response of type %s may last until the stream idle timeout",
    async (type) => {
      const { app, response } = await openPausing(type, { bodyIdleMs: SHORT_MS, eventsIdleMs: 60_000 });
      const text = textOf(response);
      await sleep(LONG_MS);
      app.end("data: 2\n\n");
      expect(await text).toBe("data: 1\n\ndata: 2\n\n");
    },
  );

  test("paused event stream is aborted after the stream idle timeout", async () => {
    const { response } = await openPausing("text/event-stream", { bodyIdleMs: 60_000, eventsIdleMs: SHORT_MS });
    await expect(textOf(response)).rejects.toThrow();
  });

  test("idle timeout of one response does not affect the next on its connection", async () => {
    const app = await startApp((req, res) => {
      if (req.url === "/events") res.writeHead(200, { "Content-Type": "text/event-stream" }).end("data: 1\n\n");
      else res.writeHead(200, { "Content-Type": "text/plain" }).write("half");
    });
    gate = await openGate({ ...OPEN, app, timeouts: { bodyIdleMs: SHORT_MS, eventsIdleMs: 60_000 } });
    const ask = async (path: string): Promise<IncomingMessage> => {
      const asked = request({ port: gate.port, host: "127.0.0.1", agent: false, path }).end();
      return ((await once(asked, "response")) as [IncomingMessage])[0];
    };
    expect(await textOf(await ask("/events"))).toBe("data: 1\n\n");
    await expect(textOf(await ask("/half"))).rejects.toThrow();
  });
});

describe.each([{ speaks: "HTTP/1.1" }, { speaks: "h2c" }])(
  "app over $speaks that starts its response before the request ends",
  ({ speaks }) => {
    const UPLOAD = Buffer.alloc(64 * 1024 * 1024);

    interface AtApp {
      readonly atApp: Pick<Readable, "on" | "once" | "pause" | "resume">;
      readonly app: Pick<Writable, "write" | "end">;
    }

    let h2c: Http2Server | undefined;
    const sessions: ServerHttp2Session[] = [];
    afterEach(() => {
      for (const session of sessions.splice(0)) session.destroy();
      h2c?.close();
      h2c = undefined;
    });

    async function openApp(begin: (of: AtApp) => void, timeouts: GateOptions["timeouts"] & {}): Promise<TestGate> {
      if (speaks === "HTTP/1.1") {
        const app = await startApp((atApp, res) => begin({ atApp, app: res }));
        return openGate({ ...OPEN, app, timeouts });
      }
      h2c = createHttp2Server((atApp, res) => begin({ atApp, app: res.stream }));
      h2c.on("session", (session) => sessions.push(session));
      h2c.listen(0, "127.0.0.1");
      await once(h2c, "listening");
      const upstream = `http://127.0.0.1:${(h2c.address() as AddressInfo).port}`;
      return openGate({ ...OPEN, timeouts, config: { upstream, upstreamProtocol: "h2c" } });
    }

    /** Returns the response, of which the app has sent the first bytes. */
    async function openUpload(bodyIdleMs: number): Promise<AtApp & { response: IncomingMessage }> {
      const begun = Promise.withResolvers<AtApp>();
      gate = await openApp(
        (of) => {
          of.atApp.pause();
          of.app.write("begun");
          begun.resolve(of);
        },
        { bodyIdleMs },
      );
      const asked = request({ port: gate.port, host: "127.0.0.1", agent: false, method: "POST" });
      asked.on("error", () => undefined).end(UPLOAD);
      const [response] = (await once(asked, "response")) as [IncomingMessage];
      return { ...(await begun.promise), response };
    }

    test("gate aborts an early response when the app neither reads nor sends", async () => {
      const { response } = await openUpload(SHORT_MS);
      await expect(textOf(response)).rejects.toThrow();
      await waitFor("its place to be free", async () =>
        (await gate.metrics()).includes('postern_sidecar_upstream_requests{state="active"} 0'),
      );
    });

    test("app may stop reading the request while it sends its early response", async () => {
      const { atApp, app, response } = await openUpload(2_000);
      const text = textOf(response);
      for (let i = 0; i < 10; i++) {
        await sleep(250);
        app.write(".");
      }
      atApp.resume().once("end", () => app.end("!"));
      expect(await text).toBe("begun..........!");
    });

    test("app may pause its early response while it reads the request", async () => {
      const { atApp, app, response } = await openUpload(2_000);
      const text = textOf(response);
      let bytes = 0;
      atApp.on("data", ({ length }: Buffer) => {
        bytes += length;
        if (bytes < 8 * 1024 * 1024) return;
        bytes = 0;
        atApp.pause();
        setTimeout(() => atApp.resume(), 400);
      });
      // The time limit to continue the response starts at the end of the request.
      atApp.once("end", () => setTimeout(() => app.end("!"), 1_000)).resume();
      expect(await text).toBe("begun!");
    });
  },
);

test("HTTP/2 app gets the full idle timeout for its response after the request ends", async () => {
  const h2c = createHttp2Server();
  const sessions: ServerHttp2Session[] = [];
  h2c.on("session", (session) => sessions.push(session));
  h2c.on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200 });
    stream.write("begun");
    stream.on("end", () => setTimeout(() => stream.end("!"), 600)).resume();
  });
  h2c.listen(0, "127.0.0.1");
  await once(h2c, "listening");
  const upstream = `http://127.0.0.1:${(h2c.address() as AddressInfo).port}`;
  gate = await openGate({
    ...OPEN,
    timeouts: { bodyIdleMs: 1_000 },
    config: { upstream, upstreamProtocol: "h2c" },
  });
  const asked = request({ port: gate.port, host: "127.0.0.1", agent: false, method: "POST" });
  const answered = once(asked, "response") as Promise<[IncomingMessage]>;
  for (let i = 0; i < 10; i++) {
    asked.write("more");
    await sleep(200);
  }
  asked.end();
  expect(await textOf((await answered)[0])).toBe("begun!");
  for (const session of sessions) session.destroy();
  h2c.close();
});

describe("a WebSocket", () => {
  async function openSocket(tunnelIdleMs: number): Promise<{ client: WebSocket; atApp: WebSocket }> {
    const app = await startApp();
    sockets = new WebSocketServer({ server: app.server });
    const connected = once(sockets, "connection") as Promise<[WebSocket]>;
    gate = await openGate({ ...OPEN, app, timeouts: { tunnelIdleMs } });
    const client = new WebSocket(`ws://127.0.0.1:${gate.port}/`);
    client.on("error", () => undefined);
    await once(client, "open");
    return { client, atApp: (await connected)[0] };
  }

  test("WebSocket without an idle timeout stays open while silent", async () => {
    const { client, atApp } = await openSocket(0);
    await sleep(LONG_MS);
    atApp.send("still there");
    expect(String((await once(client, "message"))[0])).toBe("still there");
  });

  test("silent WebSocket is closed on both sides after its idle timeout", async () => {
    const { client, atApp } = await openSocket(SHORT_MS);
    await Promise.all([once(client, "close"), once(atApp, "close")]);
  });

  test("WebSocket with traffic in one direction is not idle", async () => {
    const { client, atApp } = await openSocket(3_000);
    let got = 0;
    client.on("message", () => {
      got += 1;
    });
    for (let i = 0; i < 10; i++) {
      atApp.send("tick");
      await sleep(500);
    }
    expect([got, client.readyState]).toEqual([10, WebSocket.OPEN]);
  }, 20_000);
});
