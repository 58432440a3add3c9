import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request } from "node:https";
import { connect as connectSocket } from "node:net";
import type { TLSSocket } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { Certificate } from "../../edge/follow-certificate.ts";
import { openCertificateFolder, type TestCertificate } from "../../test/harness/certificate.ts";
import { doorsOf } from "../../test/harness/doors.ts";
import { aRule, openGate, type TestGate, waitFor } from "../../test/harness/gate.ts";
import { Authorization } from "./protocol/envoy/service/auth/v3/external_auth_pb.js";

/* The doors by TLS: a new certificate is taken while gateways ask, and with an authority of clients only those that show a certificate of it may ask. */

const folder = openCertificateFolder();
const [first, second, gateway, stranger] = ["first", "second", "gateway", "stranger"].map((name) =>
  folder.make(name),
) as [TestCertificate, TestCertificate, TestCertificate, TestCertificate];
const ca = [first.cert, second.cert];
let gate: TestGate;
afterEach(() => gate.close());
afterAll(() => folder.remove());

async function openDoors(
  initial: Certificate,
  { trusted = "127.0.0.1", limits = {}, timeouts = {} } = {},
): Promise<(certificate: Certificate) => void> {
  let certificate = initial;
  const doors = { ...doorsOf(["authorize", "grpc"], trusted), tls: () => certificate };
  gate = await openGate({
    policy: { rules: [aRule({ access: "Anonymous" })] },
    timeouts: { certificateMs: 20, ...timeouts },
    config: { upstream: undefined, doors, limits },
  });
  return (other) => {
    certificate = other;
  };
}

type Shown = Pick<TestCertificate, "cert" | "key"> | undefined;

/** The status, and who answered. Rejects when TLS does not come about. */
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

/** Whether the request passes. Rejects when it could not be asked. */
async function overGrpc(shown?: Shown): Promise<string | undefined> {
  const transport = createGrpcTransport({ baseUrl: gate.sidecar.grpcUrl ?? "", nodeOptions: { ca, ...shown } });
  const asked = { attributes: { request: { http: { method: "GET", path: "/", host: "a" } } } };
  return (await createClient(Authorization, transport).check(asked)).httpResponse.case;
}

describe("doors with a certificate", () => {
  test("are asked by TLS, and those who may ask are known by their address", async () => {
    await openDoors(first);
    expect(gate.sidecar.authorizeUrl).toMatch(/^https:/);
    expect(gate.sidecar.grpcUrl).toMatch(/^https:/);
    expect(await overHttp()).toEqual({ status: 200, name: "first" });
    expect(await overGrpc()).toBe("okResponse");
    await gate.close();
    await openDoors(first, { trusted: "10.0.0.0/8" });
    expect((await overHttp()).status).toBe(403);
    await expect(overGrpc()).rejects.toThrow("permission_denied");
  });

  test("take another one while gateways ask; one that is not usable leaves the last", async () => {
    const replace = await openDoors(first);
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

  test("close what speaks no TLS, and what does not end its handshake; others are served", async () => {
    await openDoors(first, { timeouts: { requestHeadMs: 200 } });
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

  test("end in time while handshakes hang", async () => {
    await openDoors(first, { timeouts: { closeMs: 200 } });
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

describe("doors with an authority of clients", () => {
  test("are asked by those alone that show a certificate of it, from any address", async () => {
    await openDoors({ ...first, ca: gateway.cert }, { trusted: "10.0.0.0/8" });
    expect(await overHttp(gateway)).toEqual({ status: 200, name: "first" });
    expect(await overGrpc(gateway)).toBe("okResponse");
    for (const shown of [undefined, stranger]) {
      await expect(overHttp(shown)).rejects.toThrow();
      await expect(overGrpc(shown)).rejects.toThrow();
    }
    expect(await gate.metrics()).toContain('postern_sidecar_requests_total{code="ANONYMOUS"} 2');
  });

  test("take another authority; then the former one lets no one in, not by a session that is resumed either", async () => {
    const replace = await openDoors({ ...first, ca: gateway.cert });
    // It keeps the sessions of TLS, and no connections.
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 100 });
    expect((await overHttp(gateway, agent)).status).toBe(200);
    replace({ ...first, ca: stranger.cert });
    await waitFor("the other authority to be used", async () => (await overHttp(stranger)).status === 200);
    await expect(overHttp(gateway)).rejects.toThrow();
    await expect(overHttp(gateway, agent)).rejects.toThrow();
    await expect(overGrpc(gateway)).rejects.toThrow();
  });

  test("leave others half of the connections, when one address takes all that it gets", async () => {
    await openDoors({ ...first, ca: gateway.cert }, { limits: { doorConnectionsMax: 10 } });
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
