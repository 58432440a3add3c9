import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { afterEach, describe, expect, test } from "vitest";
import { type ExtAuthOptions, openGateWithExtAuth } from "../../test/harness/ext-auth.ts";
import { aRule, type TestGate, waitFor } from "../../test/harness/gate.ts";
import { AttributeContextSchema } from "./generated/envoy/service/auth/v3/attribute_context_pb.js";
import { CheckRequestSchema } from "./generated/envoy/service/auth/v3/external_auth_pb.js";
import { ServerReflectionRequestSchema } from "./generated/grpc/reflection/v1/reflection_pb.js";

/* Attacks by clients that reach the port of the gRPC ext-auth endpoint, and misbehaving gateways. Each limit is reached on purpose. */

const CHECK = "/envoy.service.auth.v3.Authorization/Check";
const LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

let gate: TestGate | undefined;
let port = 0;
const opened: Array<{ destroy(): unknown }> = [];
afterEach(async () => {
  for (const one of opened.splice(0)) one.destroy();
  await gate?.close();
  gate = undefined;
});

async function openExtAuth(options: ExtAuthOptions = {}): Promise<TestGate> {
  const config = { ...options.config, upstream: undefined };
  const opened = await openGateWithExtAuth("grpc", { ...options, config });
  ({ gate, port } = opened);
  return opened.gate;
}

function openSession(): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  opened.push(session);
  return session;
}

function openSocket(): Socket {
  const socket = connectSocket({ host: "127.0.0.1", port });
  socket.on("error", () => undefined).resume();
  opened.push(socket);
  return socket;
}

const framed = (message: Uint8Array, flags = 0): Buffer => {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

function open(session: ClientHttp2Session, path: string, headers: Record<string, string> = {}): ClientHttp2Stream {
  const stream = session.request({
    ...{ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" },
    ...headers,
  });
  return stream.on("error", () => undefined);
}

interface Ended {
  /** `undefined` if the stream was reset without a status. */
  readonly status: string | undefined;
  readonly http: unknown;
  readonly bytes: number;
}

function ended(stream: ClientHttp2Stream): Promise<Ended> {
  return new Promise((resolve) => {
    let status: string | undefined;
    let http: unknown;
    let bytes = 0;
    const note = (headers: IncomingHttpHeaders & { ":status"?: unknown }): void => {
      http ??= headers[":status"];
      status ??= headers["grpc-status"] as string | undefined;
    };
    stream.on("response", note).on("trailers", note);
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    stream.once("close", () => resolve({ status, http, bytes }));
  });
}

function ask(path: string, message: Uint8Array, headers: Record<string, string> = {}): Promise<Ended> {
  const stream = open(openSession(), path, headers);
  stream.end(framed(message));
  return ended(stream);
}

const isServed = async (): Promise<boolean> => (await ask(HEALTH, new Uint8Array())).status === "0";
const closed = (one: ClientHttp2Session | Socket): Promise<void> =>
  new Promise((resolve) => {
    if (one.destroyed) resolve();
    else one.once("close", () => resolve());
  });
const rejected = async (why: string): Promise<number> =>
  Number(new RegExp(`ext_auth_rejected_total\\{reason="${why}"\\} (\\d+)`).exec((await gate?.metrics()) ?? "")?.[1]);

/** Codes of gRPC. */
const OK = "0";
const INVALID = "3";
const EXHAUSTED = "8";
const UNIMPLEMENTED = "12";
const INTERNAL = "13";
const UNAVAILABLE = "14";

describe("connections", () => {
  test("ext-auth gRPC endpoint reserves connections for gateways and limits untrusted addresses", async () => {
    await openExtAuth({ trusted: "127.0.0.2", config: { limits: { untrustedConnectionsMax: 8 } } });
    const silent = Array.from({ length: 40 }, openSocket);
    await waitFor("most of them to be closed", () => silent.filter(({ destroyed }) => destroyed).length === 36);
    expect(await rejected("overloaded")).toBe(36);
    const gateway = connectSocket({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
    opened.push(gateway.on("error", () => undefined));
    const session = connect("http://gate", { createConnection: () => gateway });
    const stream = open(session, HEALTH);
    stream.end(framed(new Uint8Array()));
    expect((await ended(stream)).status).toBe(OK);
    session.destroy();
    for (const socket of silent) socket.destroy();
    await waitFor("places to be free again", async () => (await ask(CHECK, new Uint8Array())).status === "7");
  });

  test("ext-auth gRPC endpoint limits gateway connections and reuses released slots", async () => {
    await openExtAuth({ config: { limits: { extAuthConnectionsMax: 5 } } });
    const many = Array.from({ length: 50 }, openSocket);
    await waitFor("the rest to be closed", () => many.filter(({ destroyed }) => destroyed).length === 45);
    for (const socket of many) socket.destroy();
    await waitFor("the ext-auth endpoint to be free", isServed);
  });

  test("ext-auth gRPC endpoint closes a connection that sends no request within a timeout", async () => {
    await openExtAuth({ timeouts: { requestHeadMs: 100 } });
    const half = openSocket();
    half.write("PRI * HTTP/2.0\r\n");
    const session = openSession();
    await Promise.all([closed(openSocket()), closed(half), closed(session)]);
    expect(await isServed()).toBe(true);
  });

  test("ext-auth gRPC endpoint closes connections that leave pings unanswered", async () => {
    await openExtAuth({ timeouts: { extAuthPingMs: 50 } });
    const session = openSession();
    const first = open(session, HEALTH);
    first.end(framed(new Uint8Array()));
    expect((await ended(first)).status).toBe(OK);
    // A raw client: preface, an empty SETTINGS, and an incomplete head of a call (`:method: POST`, `:scheme: http`, `:path: /`).
    const dead = openSocket();
    dead.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    dead.write(Buffer.from("000000040000000000000003010400000001838684", "hex"));
    await closed(dead);
    expect(session.destroyed).toBe(false);
    const again = open(session, HEALTH);
    again.end(framed(new Uint8Array()));
    expect((await ended(again)).status).toBe(OK);
  });

  test("ext-auth gRPC endpoint closes an untrusted connection after its response", async () => {
    await openExtAuth({ trusted: "10.0.0.0/8" });
    for (const [path, status] of [
      [HEALTH, OK],
      [CHECK, "7"],
    ] as const) {
      const session = openSession();
      const stream = open(session, path);
      stream.end(framed(new Uint8Array()));
      expect((await ended(stream)).status, path).toBe(status);
      await closed(session);
    }
  });

  test.each([
    { name: "pings", frame: `000008060000000000${"0".repeat(15)}1` },
    { name: "settings", frame: "000000040000000000" },
  ])("ext-auth gRPC endpoint closes connections that flood it with $name", async ({ frame }) => {
    await openExtAuth();
    const socket = openSocket();
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(Buffer.from("000000040000000000", "hex"));
    const gone = closed(socket);
    const frames = Buffer.from(frame.repeat(50), "hex");
    const sending = setInterval(() => socket.writable && socket.write(frames), 1);
    await gone;
    clearInterval(sending);
    expect(await isServed()).toBe(true);
  });

  test("ext-auth gRPC endpoint closes connections that repeatedly reset calls", async () => {
    await openExtAuth();
    const session = openSession();
    let calls = 0;
    const gone = closed(session);
    const sending = setInterval(() => {
      for (let at = 0; at < 50 && !session.destroyed && !session.closed; at++) {
        const stream = open(session, CHECK);
        calls += 1;
        setImmediate(() => stream.close(8));
      }
    }, 1);
    await gone;
    clearInterval(sending);
    expect(calls).toBeLessThan(20_000);
    expect(await isServed()).toBe(true);
  });
});

describe("calls", () => {
  test("ext-auth gRPC endpoint rejects concurrent calls above its limit immediately", async () => {
    await openExtAuth({ config: { limits: { extAuthCallsMax: 10 } } });
    const session = openSession();
    const waiting = Array.from({ length: 300 }, () => ended(open(session, CHECK)));
    // Calls above the stream limit of one connection do not begin; ten of the others wait for their message.
    await waitFor("the rest to be refused", async () => (await rejected("overloaded")) >= 246);
    expect((await ask(HEALTH, new Uint8Array())).status).toBe(UNAVAILABLE);
    session.destroy();
    await Promise.all(waiting);
    await waitFor("the ext-auth endpoint to be free", isServed);
  });

  test("ext-auth gRPC endpoint resets calls whose message arrives too slowly", async () => {
    await openExtAuth({ timeouts: { requestHeadMs: 200 } });
    const session = openSession();
    const silent = open(session, CHECK);
    const dripping = open(session, LIMIT);
    dripping.write(framed(new Uint8Array(1000)).subarray(0, 5));
    const drip = setInterval(() => dripping.write(Buffer.alloc(1)), 20);
    expect((await Promise.all([ended(silent), ended(dripping)])).map(({ status }) => status)).toEqual([
      undefined,
      undefined,
    ]);
    clearInterval(drip);
    expect(await isServed()).toBe(true);
  });

  test("ext-auth gRPC endpoint limits the number of long-lived calls", async () => {
    await openExtAuth();
    const session = openSession();
    const statuses: Array<Promise<Ended>> = [];
    for (let at = 0; at < 150; at++) {
      const stream = open(session, at % 2 === 0 ? WATCH : REFLECTION);
      statuses.push(ended(stream));
      if (at % 2 === 0) stream.end(framed(new Uint8Array()));
    }
    await waitFor("fifty to be refused", async () => (await rejected("overloaded")) === 50);
    expect(await isServed()).toBe(true);
    session.destroy();
    await Promise.all(statuses);
  });

  test("gRPC reflection stream ends after the maximum number of requests", async () => {
    await openExtAuth();
    const stream = open(openSession(), REFLECTION);
    const asked = create(ServerReflectionRequestSchema, {
      messageRequest: { case: "fileContainingSymbol", value: "envoy.service.auth.v3.Authorization" },
    });
    const one = framed(toBinary(ServerReflectionRequestSchema, asked));
    const result = ended(stream);
    for (let at = 0; at < 202 && !stream.destroyed; at++) {
      if (!stream.write(one)) await Promise.race([new Promise((resolve) => stream.once("drain", resolve)), result]);
    }
    expect((await result).status).toBe(EXHAUSTED);
    expect(await isServed()).toBe(true);
  });
});

/** Returns nested lists, deep enough to make a recursive reader fail. */
function nested(levels: number): Uint8Array {
  // A `Value` of a `ListValue`, built from the inside out.
  let bytes: Uint8Array = toBinary(ValueSchema, create(ValueSchema, { kind: { case: "boolValue", value: true } }));
  const wrap = (field: number, inner: Uint8Array): Uint8Array => {
    const head = [(field << 3) | 2];
    let length = inner.length;
    for (; length > 127; length >>>= 7) head.push((length & 127) | 128);
    return Buffer.concat([Buffer.from([...head, length]), inner]);
  };
  for (let at = 0; at < levels; at++) bytes = wrap(6, wrap(1, bytes));
  const entry = Buffer.concat([wrap(1, Buffer.from("a")), wrap(2, bytes)]);
  const struct = wrap(1, entry);
  expect(StructSchema.typeName).toBe("google.protobuf.Struct");
  // CheckRequest.attributes.metadata_context.filter_metadata["f"]
  return wrap(1, wrap(11, wrap(1, Buffer.concat([wrap(1, Buffer.from("f")), wrap(2, struct)]))));
}

describe("messages", () => {
  const unknown = (bytes: number): Uint8Array => {
    // Field 999, of bytes.
    const head = Buffer.from([0xba, 0x3e, ...[(bytes & 127) | 128, ((bytes >> 7) & 127) | 128, bytes >> 14]]);
    return Buffer.concat([head, Buffer.alloc(bytes)]);
  };
  const request = (http: object, more: Uint8Array = new Uint8Array()): Uint8Array => {
    const attributes = create(AttributeContextSchema, { request: { http: { method: "GET", host: "a", ...http } } });
    return Buffer.concat([toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes })), more]);
  };

  test.each([
    { name: "one that is too long", path: CHECK, message: unknown(140_000), status: EXHAUSTED },
    {
      name: "one as long as may be, of unknown fields",
      path: CHECK,
      message: request({ path: "/" }, unknown(120_000)),
      status: OK,
    },
    { name: "lists in lists without end", path: CHECK, message: nested(10_000), status: INTERNAL },
    { name: "no protobuf", path: CHECK, message: Buffer.from("GET / HTTP/1.1\r\n\r\n"), status: INTERNAL },
    { name: "half a field", path: LIMIT, message: Buffer.from([0x0a, 0x7f, 0x61]), status: INTERNAL },
    { name: "nothing", path: CHECK, message: new Uint8Array(), status: INVALID },
  ])(
    "ext-auth gRPC endpoint responds with status $status to a message with $name",
    async ({ path, message, status }) => {
      await openExtAuth();
      expect((await ask(path, message)).status).toBe(status);
      expect(await isServed()).toBe(true);
      expect(await gate?.metrics()).toContain('postern_sidecar_internal_errors_total{source="exchange"} 0');
    },
  );

  test("ext-auth gRPC endpoint rejects compressed messages and wrong message lengths", async () => {
    await openExtAuth();
    const long = open(openSession(), CHECK);
    long.end(Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 0]));
    expect((await ended(long)).status).toBe(EXHAUSTED);
    const squeezed = open(openSession(), CHECK, { "grpc-encoding": "gzip" });
    squeezed.end(framed(Buffer.alloc(20), 1));
    expect((await ended(squeezed)).status).toBe(UNIMPLEMENTED);
  });

  test("ext-auth gRPC endpoint responds UNIMPLEMENTED for an unknown procedure", async () => {
    await openExtAuth();
    expect(await ask("/envoy.service.auth.v3.Authorization/Nothing", new Uint8Array())).toMatchObject({ http: 404 });
  });

  test.each(["application/json", "text/html", "application/grpc-web", ""])(
    "ext-auth gRPC endpoint rejects content type %j",
    async (type) => {
      await openExtAuth();
      const { http, status } = await ask(CHECK, request({ path: "/" }), { "content-type": type });
      expect(http).toBe(415);
      expect(status).toBeUndefined();
    },
  );

  test("oversized gRPC metadata fails only its own call", async () => {
    await openExtAuth();
    const { status } = await ask(HEALTH, new Uint8Array(), { x: "x".repeat(100_000) });
    expect(status).not.toBe(OK);
    expect(await isServed()).toBe(true);
  });

  test("ext-auth gRPC endpoint denies a check request with thousands of headers as malformed", async () => {
    const extAuth = await openExtAuth({ policy: { rules: [aRule({ access: "Anonymous" })] } });
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, "1"]));
    await ask(CHECK, request({ path: "/", headers: many(400) }));
    expect(await extAuth.metrics()).toContain('requests_total{code="ANONYMOUS"} 1');
    await ask(CHECK, request({ path: "/", headers: many(4_000) }));
    expect(await extAuth.metrics()).toContain('requests_total{code="MALFORMED"} 1');
  });
});
