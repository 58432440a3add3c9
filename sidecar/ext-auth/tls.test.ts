import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request } from "node:https";
import { connect as connectSocket, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { Certificate } from "../../edge/follow-certificate.ts";
import { openCertificateFolder, type TestCertificate } from "../../test/harness/certificate.ts";
import { extAuthOf } from "../../test/harness/ext-auth.ts";
import { aRule, openGate, type TestGate, waitFor } from "../../test/harness/gate.ts";
import { Authorization } from "./generated/envoy/service/auth/v3/external_auth_pb.js";

/*
 * The ext-auth endpoints over TLS: a new certificate is loaded while gateways call, and with client authorities only clients with a
 * certificate issued by them are accepted.
 */

const folder = openCertificateFolder();
const [first, second, gateway, stranger] = ["first", "second", "gateway", "stranger"].map((name) =>
  folder.make(name),
) as [TestCertificate, TestCertificate, TestCertificate, TestCertificate];
const ca = [first.cert, second.cert];
let gate: TestGate;
afterEach(() => gate.close());
afterAll(() => folder.remove());

async function openExtAuthServers(
  initial: Certificate,
  { trusted = "127.0.0.1", limits = {}, timeouts = {} } = {},
): Promise<(certificate: Certificate) => void> {
  let certificate = initial;
  const extAuth = { ...extAuthOf(["authorize", "grpc"], trusted), tls: () => certificate };
  gate = await openGate({
    policy: { rules: [aRule({ access: "Anonymous" })] },
    timeouts: { certificateMs: 20, ...timeouts },
    config: { upstream: undefined, extAuth, limits },
  });
  return (other) => {
    certificate = other;
  };
}

type Shown = Pick<TestCertificate, "cert" | "key"> | undefined;

/** Returns the status and the server certificate. Rejects when the TLS handshake fails. */
async function overHttp(shown?: Shown, agent: Agent | false = false): Promise<{ status: number; name: string }> {
  const headers = { "X-Original-Method": "GET", "X-Original-URI": "/", "X-Forwarded-For": "192.0.2.7" };
  const url = `${gate.sidecar.authorizeUrl}/authorize`;
  const req = request(url, { ca, headers, agent, ...shown }).end();
  const [res] = await once(req, "response");
  res.resume();
  const { CN } = (res.socket as TLSSocket).getPeerCertificate().subject;
  await once(res, "end");
  return { status: res.statusCode, name: String(CN) };
}

/** Returns whether the request is admitted. Rejects when the call fails. */
async function overGrpc(shown?: Shown): Promise<string | undefined> {
  const transport = createGrpcTransport({ baseUrl: gate.sidecar.grpcUrl ?? "", nodeOptions: { ca, ...shown } });
  const asked = { attributes: { request: { http: { method: "GET", path: "/", host: "a" } } } };
  return (await createClient(Authorization, transport).check(asked)).httpResponse.case;
}

describe("ext-auth endpoints with a certificate", () => {
  test("ext-auth endpoints serve TLS and identify trusted gateways by address", async () => {
    await openExtAuthServers(first);
    expect(gate.sidecar.authorizeUrl).toMatch(/^https:/);
    expect(gate.sidecar.grpcUrl).toMatch(/^https:/);
    expect(await overHttp()).toEqual({ status: 200, name: "first" });
    expect(await overGrpc()).toBe("okResponse");
    await gate.close();
    await openExtAuthServers(first, { trusted: "10.0.0.0/8" });
    expect((await overHttp()).status).toBe(403);
    await expect(overGrpc()).rejects.toThrow("permission_denied");
  });

  test("ext-auth endpoints reload their certificate and keep the last valid one", async () => {
    const replace = await openExtAuthServers(first);
    const session = connectHttp2(gate.sidecar.grpcUrl ?? "", { ca });
    await once(session, "connect");
    replace({ cert: second.cert, key: first.key });
    const untilMs = performance.now() + 100;
    while (performance.now() < untilMs) expect((await overHttp()).name).toBe("first");
    replace(second);
    await waitFor("the second to be used", async () => (await overHttp()).name === "second");
    expect(await overGrpc()).toBe("okResponse");
    expect(session.destroyed).toBe(false);
    session.destroy();
  });

  test("ext-auth endpoints close plain-text connections and unfinished TLS handshakes", async () => {
    await openExtAuthServers(first, { timeouts: { requestHeadMs: 200 } });
    for (const url of [gate.sidecar.authorizeUrl, gate.sidecar.grpcUrl]) {
      const { port } = new URL(url ?? "");
      const [plain, silent] = [0, 0].map(() => {
        const socket = connectSocket({ host: "127.0.0.1", port: Number(port) });
        return socket.on("error", () => undefined).resume();
      });
      plain?.write("GET /authorize HTTP/1.1\r\nHost: a\r\n\r\n");
      await Promise.all([plain, silent].map((socket) => socket && once(socket, "close")));
    }
    expect((await overHttp()).status).toBe(200);
  });

  test("ext-auth endpoints limit connections to 1,000, including those in a TLS handshake", async () => {
    await openExtAuthServers(first, { timeouts: { requestHeadMs: 600_000 } });
    const port = Number(new URL(gate.sidecar.authorizeUrl ?? "").port);
    const all: Socket[] = [];
    const isClosed = ({ destroyed }: Socket): boolean => destroyed;
    const open = (): number => all.filter((socket) => !socket.connecting && !isClosed(socket)).length;
    while (!all.some(isClosed) && all.length < 1_200) {
      const batch = Array.from({ length: 100 }, () => connectSocket({ host: "127.0.0.1", port }));
      for (const socket of batch) socket.on("error", () => undefined).resume();
      all.push(...batch);
      // The kernel accepts a connection before the gate closes it.
      const isDone = (): boolean => batch.every(({ connecting }) => !connecting) && open() <= 1_000;
      await waitFor("them to be open, or closed", isDone, { deadlineMs: 60_000 });
    }
    expect(open()).toBe(1_000);
    expect(await gate.metrics()).toContain('ext_auth_rejected_total{reason="overloaded"} 100');
    all[0]?.destroy();
    await waitFor("a place", async () => (await overHttp().catch(() => undefined))?.status === 200);
    for (const socket of all) socket.destroy();
  }, 120_000);

  test("gate shutdown completes in time despite unfinished TLS handshakes", async () => {
    await openExtAuthServers(first, { timeouts: { closeMs: 200 } });
    const hanging = [gate.sidecar.authorizeUrl, gate.sidecar.grpcUrl].map((url) =>
      connectSocket({ host: "127.0.0.1", port: Number(new URL(url ?? "").port) })
        .on("error", () => undefined)
        .resume(),
    );
    await Promise.all(hanging.map((socket) => once(socket, "connect")));
    const closed = Promise.all(hanging.map((socket) => once(socket, "close")));
    const startedMs = performance.now();
    await gate.sidecar.close();
    await closed;
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});

describe("ext-auth endpoints with a client CA", () => {
  test("ext-auth endpoints accept clients of any address with a certificate of the CA", async () => {
    await openExtAuthServers({ ...first, ca: gateway.cert }, { trusted: "10.0.0.0/8" });
    expect(await overHttp(gateway)).toEqual({ status: 200, name: "first" });
    expect(await overGrpc(gateway)).toBe("okResponse");
    for (const shown of [undefined, stranger]) {
      await expect(overHttp(shown)).rejects.toThrow();
      await expect(overGrpc(shown)).rejects.toThrow();
    }
    expect(await gate.metrics()).toContain('postern_sidecar_requests_total{code="ANONYMOUS"} 2');
  });

  test("ext-auth endpoints reject clients with a certificate of a replaced CA, including resumed TLS sessions", async () => {
    const replace = await openExtAuthServers({ ...first, ca: gateway.cert });
    // Keeps TLS sessions, but no connections.
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 100 });
    expect((await overHttp(gateway, agent)).status).toBe(200);
    replace({ ...first, ca: stranger.cert });
    await waitFor("the other authority to be used", async () => (await overHttp(stranger)).status === 200);
    await expect(overHttp(gateway)).rejects.toThrow();
    await expect(overHttp(gateway, agent)).rejects.toThrow();
    await expect(overGrpc(gateway)).rejects.toThrow();
  });

  test("ext-auth endpoints limit one address to half of the connections", async () => {
    await openExtAuthServers({ ...first, ca: gateway.cert }, { limits: { extAuthConnectionsMax: 10 } });
    const port = Number(new URL(gate.sidecar.authorizeUrl ?? "").port);
    const open = Array.from({ length: 20 }, () =>
      connectSocket({ host: "127.0.0.1", localAddress: "127.0.0.2", port })
        .on("error", () => undefined)
        .resume(),
    );
    await waitFor("the rest to be closed", () => open.filter(({ destroyed }) => destroyed).length === 15);
    expect((await overHttp(gateway)).status).toBe(200);
    for (const socket of open) socket.destroy();
  });
});
