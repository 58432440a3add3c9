import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { type ExtAuthOptions, openGateWithExtAuth } from "../../test/harness/ext-auth.ts";
import { aRule, call, type RawResponse, sendRaw, type TestGate, waitFor } from "../../test/harness/gate.ts";

/*
 * Attacks by clients that reach the port of the HTTP ext-auth endpoint, and by clients whose headers a gateway forwards so that another
 * request is evaluated than their own.
 */

let gate: TestGate | undefined;
let port = 0;
const opened: Socket[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) one.destroy();
  await gate?.close();
  gate = undefined;
});

async function openExtAuth(options: ExtAuthOptions = {}): Promise<TestGate> {
  const config = { ...options.config, upstream: undefined };
  const opened = await openGateWithExtAuth("authorize", { ...options, config });
  ({ gate, port } = opened);
  return opened.gate;
}

function openSocket(localAddress = "127.0.0.1"): Socket & { text: string } {
  const socket = Object.assign(connect({ host: "127.0.0.1", port, localAddress }), { text: "" });
  socket.on("error", () => undefined).setEncoding("latin1");
  socket.on("data", (text: string) => {
    socket.text += text;
  });
  opened.push(socket);
  return socket;
}

const closed = (socket: Socket): Promise<unknown> =>
  new Promise((resolve) => (socket.destroyed ? resolve(undefined) : socket.once("close", resolve)));

const about = (method: string, target: string, more: Record<string, string> = {}) => ({
  path: "/authorize",
  headers: { "X-Original-Method": method, "X-Original-URI": target, "X-Forwarded-For": "192.0.2.7", ...more },
});

const QUESTION =
  "GET /authorize HTTP/1.1\r\nHost: g\r\nX-Original-Method: GET\r\nX-Original-URI: /public\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n";
const PUBLIC = aRule({ path: { prefix: "/public" }, access: "Anonymous" });

describe("connections", () => {
  test("ext-auth HTTP endpoint reserves connections for gateways and limits untrusted addresses", async () => {
    const extAuth = await openExtAuth({
      trusted: "127.0.0.2",
      policy: { rules: [PUBLIC] },
      config: { limits: { untrustedConnectionsMax: 8 } },
    });
    const silent = Array.from({ length: 400 }, () => openSocket());
    await waitFor("most of them to be closed", () => silent.filter(({ destroyed }) => destroyed).length === 396);
    expect(await extAuth.metrics()).toContain('ext_auth_rejected_total{reason="overloaded"} 396');
    const gateway = openSocket("127.0.0.2");
    gateway.write(QUESTION);
    await waitFor("an answer", () => gateway.text.startsWith("HTTP/1.1 200"));
    // A released connection becomes available to other clients.
    for (const socket of silent) socket.destroy();
    await waitFor("a place", async () => {
      const stranger = openSocket();
      stranger.write(QUESTION);
      await closed(stranger);
      return stranger.text.startsWith("HTTP/1.1 403");
    });
  });

  test.each([
    { name: "nothing", send: "" },
    { name: "half a head", send: "GET /authorize HTTP/1.1\r\nHost: g\r\n" },
    { name: "half a body", send: QUESTION.replace("\r\n\r\n", "\r\nContent-Length: 1000\r\n\r\n12345") },
  ])("ext-auth HTTP endpoint closes connections that slowly send $name", async ({ send }) => {
    await openExtAuth({ timeouts: { requestHeadMs: 200 } });
    const socket = openSocket();
    socket.write(send);
    const drip = setInterval(() => socket.writable && send !== "" && socket.write("a"), 20);
    await closed(socket);
    clearInterval(drip);
  });

  test("ext-auth HTTP endpoint closes connections that leave responses unread", async () => {
    const extAuth = await openExtAuth({ policy: { rules: [PUBLIC] }, timeouts: { responseReadMs: 200 } });
    const socket = openSocket();
    socket.pause();
    const gone = closed(socket);
    const many = QUESTION.repeat(1_000);
    const sending = setInterval(() => socket.writable && socket.writableLength === 0 && socket.write(many), 1);
    await waitFor("the ext-auth endpoint to close it", () => gone.then(() => true), { deadlineMs: 20_000 });
    clearInterval(sending);
    const responses = Number(/requests_total\{code="ANONYMOUS"\} (\d+)/.exec(await extAuth.metrics())?.[1]);
    // At most the buffers of the kernel on both sides.
    expect(responses).toBeGreaterThan(0);
    expect(responses).toBeLessThan(100_000);
  });
});

/**
 * Targets that programs interpret in different ways. An ext-auth endpoint either rejects one, or returns the one target that it has
 * evaluated.
 */
const TARGETS = [
  "/admin",
  "/%61dmin",
  "/%2e%2e/admin",
  "/public/%2e%2e/admin",
  "/public/..%2fadmin",
  "/public/../admin",
  "//admin",
  "/public//admin",
  "/public;/../admin",
  "/public/..;/admin",
  "/admin;x",
  "/public%23/../admin",
  "/public#/../admin",
  "/public?/../admin",
  "/public%3f/../admin",
  "/public\\..\\admin",
  "/public%5c..%5cadmin",
  "/public%00",
  "/public%",
  "/public%zz",
  "/public%c0%af..%c0%afadmin",
  "/public/%252e%252e/admin",
  "http://x/public",
  "http://x/admin",
  "//x/admin",
  "*",
  "public",
  "?/public",
  "",
  "/public?key=a&key=b",
  "/public?key=",
  "/admin?%6bey=KEY",
  "/admin?key=KEY#x",
  "/admin?x;key=KEY",
] as const;
/** Whether an app that decodes a target once, and then resolves each `..`, arrives under `/admin`. */
function isAdmin(target: string): boolean {
  const segments: string[] = [];
  for (const segment of decodeURIComponent(target.split("?")[0] ?? "").split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments[0] === "admin";
}

test("ext-auth HTTP and gRPC endpoints decide alike about every request target", async () => {
  const extAuth = await openExtAuth({
    policy: {
      rules: [PUBLIC, aRule({ path: { prefix: "/admin" }, permissions: "admin" })],
      credentials: [
        { in: "header", name: "X-API-Key" },
        { in: "query", name: "key" },
      ],
    },
  });
  const key = await extAuth.records.putKey();
  const outcomeOf = ({ status, text }: RawResponse): string =>
    status === 200 ? `passes as ${/^x-postern-target: (.*)\r$/im.exec(text)?.[1]}` : `refused with ${status}`;
  for (const one of TARGETS) {
    const target = one.replace("KEY", key);
    const told = async (method: string, uri: string): Promise<string> => {
      const head = `GET /authorize HTTP/1.1\r\nHost: g\r\nConnection: close\r\n${method}: GET\r\n${uri}: ${target}\r\n\r\n`;
      return outcomeOf(await sendRaw(port, head));
    };
    const asOriginal = await told("X-Original-Method", "X-Original-URI");
    expect(await told("X-Forwarded-Method", "X-Forwarded-Uri"), target).toBe(asOriginal);
    expect(asOriginal, target).not.toContain(key);
    const passes = /^passes as (.*)$/.exec(asOriginal);
    if (passes !== null) expect(isAdmin(passes[1] ?? ""), target).toBe(false);
    // Only a target that begins with a slash can follow the path of the ext-auth endpoint; others are not addressed to it.
    const itself = await sendRaw(port, `GET /authorize${target} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n`);
    if (target.startsWith("/")) expect(outcomeOf(itself), target).toBe(asOriginal);
    else expect(itself.status, target).toBeGreaterThanOrEqual(400);
  }
});

describe("untrusted check requests", () => {
  const asked = async (lines: readonly string[], path = "/authorize"): Promise<number> => {
    const head = [`GET ${path} HTTP/1.1`, "Host: g", "Connection: close", ...lines].join("\r\n");
    return (await sendRaw(port, `${head}\r\n\r\n`)).status;
  };
  const ORIGINAL = ["X-Original-Method: GET", "X-Original-URI: /public"];
  const FORWARDED = ["X-Forwarded-Method: GET", "X-Forwarded-Uri: /public"];

  test.each([
    { name: "that is told in two ways", lines: [...ORIGINAL, ...FORWARDED] },
    { name: "that is told twice in one way", lines: [...ORIGINAL, "X-Original-URI: /public"] },
    { name: "with half of another way", lines: [...ORIGINAL, "X-Forwarded-Uri: /public"] },
    { name: "half told in each way", lines: ["X-Original-Method: GET", "X-Forwarded-Uri: /public"] },
    { name: "whose method is told twice, in two spellings", lines: [...ORIGINAL, "x-original-METHOD: POST"] },
    { name: "with an empty method", lines: ["X-Original-Method:", "X-Original-URI: /public"] },
    { name: "with an empty target", lines: ["X-Original-Method: GET", "X-Original-URI: "] },
    { name: "with the method in small letters", lines: ["X-Original-Method: get", "X-Original-URI: /public"] },
    { name: "with a method that is none", lines: ["X-Original-Method: GET /public", "X-Original-URI: /public"] },
    { name: "with a method that no one knows", lines: ["X-Original-Method: GETS", "X-Original-URI: /public"] },
    { name: "of Envoy, with the headers of others", lines: ORIGINAL, path: "/authorize/public" },
    { name: "of Envoy, with an empty one of them", lines: ["X-Forwarded-Uri:"], path: "/authorize/public" },
  ])("ext-auth HTTP endpoint rejects a check request $name", async ({ lines, path }) => {
    const extAuth = await openExtAuth({ policy: { rules: [PUBLIC] } });
    expect(await asked(path === undefined ? ORIGINAL : [], path)).toBe(200);
    expect(await asked(lines, path)).toBe(400);
    expect(await extAuth.metrics()).toContain('requests_total{code="ANONYMOUS"} 1');
  });

  test.each(["delete", "Delete", "DELETE ", "deletE"])(
    "method %j never bypasses a policy rule for DELETE",
    async (method) => {
      const rules = [aRule({ methods: ["DELETE"], permissions: "admin" }), aRule({ access: "Anonymous" })];
      await openExtAuth({ policy: { rules } });
      for (const prefix of ["Original", "Forwarded"]) {
        const target = prefix === "Original" ? "URI" : "Uri";
        const status = await asked([`X-${prefix}-Method: ${method}`, `X-${prefix}-${target}: /orders`]);
        expect([400, 401], prefix).toContain(status);
      }
    },
  );
});

describe("headers", () => {
  test("Connection header of a client cannot remove identity headers or credentials", async () => {
    const extAuth = await openExtAuth();
    const key = await extAuth.records.putKey({ keyId: "key_1" });
    const more = { Connection: "close, X-API-Key, X-Postern-Key-Id, X-Forwarded-For", "X-API-Key": key };
    const response = await call(port, about("GET", "/", more));
    expect(response).toMatchObject({ status: 200, headers: { "x-postern-key-id": "key_1" } });
  });

  test("ext-auth HTTP endpoint rejects a request with thousands of headers, even if a credential follows them", async () => {
    const extAuth = await openExtAuth({ policy: { rules: [PUBLIC] } });
    const key = await extAuth.records.putKey();
    const some = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`x${at}`, "1"]));
    expect((await call(port, about("GET", "/", { ...some(400), "X-API-Key": key }))).status).toBe(200);
    expect((await call(port, about("GET", "/", { ...some(2_000), "X-API-Key": key }))).status).toBe(400);
    const long = Object.entries(some(20_000)).map(([name, value]) => `${name}: ${value}\r\n`);
    expect((await sendRaw(port, `GET /authorize HTTP/1.1\r\nHost: g\r\n${long.join("")}\r\n`)).status).toBe(431);
  });

  test("ext-auth HTTP endpoint reads X-Forwarded-For from its end", async () => {
    const extAuth = await openExtAuth({ policy: { clientAddress: { from: "forwardedFor", trustedProxies: [] } } });
    await extAuth.records.putApi({ ipAllowList: ["203.0.113.9"] });
    await extAuth.caughtUp();
    const key = await extAuth.records.putKey();
    const from = async (forwardedFor: string): Promise<number> =>
      (await call(port, about("GET", "/", { "X-API-Key": key, "X-Forwarded-For": forwardedFor }))).status;
    expect(await from("203.0.113.9")).toBe(200);
    for (const one of ["203.0.113.9, 192.0.2.7", "203.0.113.9,", "203.0.113.9, unknown", "", "203.0.113.9;192.0.2.7"]) {
      expect(await from(one), one).toBe(403);
    }
  });
});
