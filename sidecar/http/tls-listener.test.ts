import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { connect as connectSocket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { Certificate } from "../../edge/follow-certificate.ts";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { type GateOptions, OPEN, openGate, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/* Requests over TLS: ALPN selects the protocol, and a new certificate is loaded while requests continue. */

const folder = openCertificateFolder();
const first = folder.make("first");
const second = folder.make("second");
const ca = [first.cert, second.cert];
let gate: TestGate;
afterEach(() => gate.close());
afterAll(() => folder.remove());

async function openTls(options: GateOptions = {}): Promise<(certificate: Certificate) => void> {
  let certificate: Certificate = first;
  const timeouts = { certificateMs: 20, ...options.timeouts };
  gate = await openGate({ ...OPEN, ...options, timeouts, config: { tls: () => certificate } });
  return (other) => {
    certificate = other;
  };
}

async function overHttp1(path = "/"): Promise<{ status: number | undefined; body: string; name: string }> {
  const req = request({ host: "127.0.0.1", port: gate.port, path, ca, agent: false }).end();
  const [res] = await once(req, "response");
  let body = "";
  for await (const piece of res) body += piece;
  return { status: res.statusCode, body, name: nameOf(res.socket) };
}

const nameOf = (socket: TLSSocket): string => String(socket.getPeerCertificate().subject.CN);

async function protocolFor(ALPNProtocols: string[] | undefined): Promise<string | false | null> {
  const socket = connectTls({
    ...{ host: "127.0.0.1", port: gate.port, ca },
    ...(ALPNProtocols === undefined ? {} : { ALPNProtocols }),
  });
  await once(socket, "secureConnect");
  const { alpnProtocol } = socket;
  socket.destroy();
  return alpnProtocol;
}

describe("TLS", () => {
  test("gate serves HTTP/1.1 and HTTP/2 over TLS as negotiated by ALPN", async () => {
    await openTls();
    expect(gate.sidecar.url).toMatch(/^https:/);
    expect(await overHttp1()).toEqual({ status: 200, body: "ok", name: "first" });
    expect(await protocolFor(["http/1.1"])).toBe("http/1.1");
    expect(await protocolFor(["h2", "http/1.1"])).toBe("h2");
    expect(await protocolFor(undefined)).toBe(false);
    const session = connectHttp2(`https://127.0.0.1:${gate.port}`, { ca });
    const stream = session.request({ ":path": "/two", ":method": "POST" });
    stream.end("x".repeat(200_000));
    const [head] = await once(stream, "response");
    expect(head[":status"]).toBe(200);
    stream.resume();
    await once(stream, "close");
    session.destroy();
    expect(gate.app.seen.at(-1)).toMatchObject({ url: "/two", method: "POST" });
    expect(gate.app.seen.at(-1)?.body).toHaveLength(200_000);
  });

  test("gate forwards a WebSocket over TLS", async () => {
    const app = await startApp();
    const sockets = new WebSocketServer({ server: app.server });
    sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
    await openTls({ app });
    const socket = new WebSocket(`wss://127.0.0.1:${gate.port}/chat`, { ca });
    await once(socket, "open");
    socket.send("hello");
    const [data] = await once(socket, "message");
    expect(String(data)).toBe("hello");
    socket.terminate();
  });

  test("gate closes plain HTTP and stalled handshakes on its TLS port", async () => {
    await openTls({ timeouts: { requestHeadMs: 200 } });
    const plain = connectSocket({ host: "127.0.0.1", port: gate.port });
    plain.on("error", () => undefined).resume();
    plain.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const silent = connectSocket({ host: "127.0.0.1", port: gate.port });
    silent.on("error", () => undefined).resume();
    await Promise.all([once(plain, "close"), once(silent, "close")]);
    expect(gate.app.seen).toEqual([]);
    expect((await overHttp1()).status).toBe(200);
  });

  test("gate shutdown is not delayed by a stalled TLS handshake", async () => {
    await openTls();
    const silent = connectSocket({ host: "127.0.0.1", port: gate.port });
    silent.on("error", () => undefined).resume();
    await once(silent, "connect");
    const closed = once(silent, "close");
    const startedMs = performance.now();
    await gate.sidecar.close();
    await closed;
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});

describe("certificate reload", () => {
  test("gate uses a new TLS certificate for new connections without failing open requests", async () => {
    const replace = await openTls();
    const session = connectHttp2(`https://127.0.0.1:${gate.port}`, { ca });
    const names = new Set<string>();
    const failed: unknown[] = [];
    let goesOn = true;
    const traffic = async (): Promise<void> => {
      while (goesOn) {
        try {
          const { status, name } = await overHttp1();
          names.add(name);
          if (status !== 200) failed.push(status);
          const stream = session.request({ ":path": "/" });
          const [head] = await once(stream, "response");
          if (head[":status"] !== 200) failed.push(head[":status"]);
          stream.close();
        } catch (error) {
          failed.push(error);
        }
      }
    };
    const running = [traffic(), traffic()];
    await waitFor("the first to be used", () => names.has("first"));
    replace(second);
    await waitFor("the second to be used", () => names.has("second"));
    goesOn = false;
    await Promise.all(running);
    expect(failed).toEqual([]);
    expect(nameOf(session.socket as TLSSocket)).toBe("first");
    session.destroy();
  });

  test("gate keeps its TLS certificate when the new one is invalid", async () => {
    const replace = await openTls();
    replace({ cert: second.cert, key: first.key });
    const untilMs = performance.now() + 200;
    while (performance.now() < untilMs) expect((await overHttp1()).name).toBe("first");
    replace(second);
    await waitFor("the second to be used", async () => (await overHttp1()).name === "second");
  });
});
