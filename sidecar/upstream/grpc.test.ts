import { once } from "node:events";
import { connect, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { call, OPEN, openGate, type TestGate, waitFor } from "../../test/harness/gate.ts";
import {
  Health,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "../ext-auth/generated/grpc/health/v1/health_pb.js";
import {
  ServerReflection,
  ServerReflectionResponseSchema,
} from "../ext-auth/generated/grpc/reflection/v1/reflection_pb.js";

/*
 * A gRPC app behind the gate, with a gRPC client, both by Connect, an independent implementation. Health has a unary call and a
 * server-streaming call, reflection a bidirectional one.
 */

const LARGE = Buffer.alloc(4 * 1024 * 1024);

let gate: TestGate;
let server: Http2Server | undefined;
let sessions: ServerHttp2Session[] = [];
afterEach(async () => {
  await gate.close();
  for (const session of sessions) session.destroy();
  sessions = [];
  server?.close();
});

async function serve(listener: (server: Http2Server) => void): Promise<string> {
  server = createServer();
  listener(server);
  server.on("session", (session) => sessions.push(session));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const seen: { signal?: AbortSignal | undefined; headers?: Headers | undefined } = {};
const { SERVING, NOT_SERVING } = HealthCheckResponse_ServingStatus;

const serveHealth = (): Promise<string> =>
  serve((http2) => {
    const handler = connectNodeAdapter({
      grpc: true,
      routes: (router) => {
        router.service(Health, {
          async check({ service }, context) {
            seen.headers = context.requestHeader;
            context.responseHeader.set("x-early", "1");
            context.responseTrailer.set("x-late", "2");
            if (service === "missing") throw new ConnectError("it is missing", Code.NotFound);
            if (service === "slow") await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
            return create(HealthCheckResponseSchema, { status: SERVING });
          },
          async *watch({ service }, { signal }) {
            seen.signal = signal;
            for (let at = 0; at < 3; at += 1) yield { status: at % 2 === 0 ? SERVING : NOT_SERVING };
            if (service === "open") await new Promise((resolve) => signal.addEventListener("abort", resolve));
          },
        });
        router.service(ServerReflection, {
          async *serverReflectionInfo(requests) {
            for await (const { host } of requests)
              yield create(ServerReflectionResponseSchema, { validHost: `heard ${host}` });
          },
        });
      },
    });
    http2.on("request", handler);
  });

async function openGrpc(options: Parameters<typeof openGate>[0] = {}) {
  const upstream = await serveHealth();
  gate = await openGate({ ...options, config: { upstream, upstreamProtocol: "h2c" } });
  const key = await gate.records.putKey();
  const transport = createGrpcTransport({
    baseUrl: `http://127.0.0.1:${gate.port}`,
    interceptors: [
      (next) => (request) => {
        if (!request.header.has("authorization")) request.header.set("authorization", `Bearer ${key}`);
        return next(request);
      },
    ],
  });
  return { key, health: createClient(Health, transport), reflection: createClient(ServerReflection, transport) };
}

describe("a call", () => {
  test("gRPC call with a valid key reaches the app without the key", async () => {
    const { health } = await openGrpc();
    const rollbacks: Headers[] = [];
    const response = await health.check(
      { service: "" },
      { onHeader: (headers) => void rollbacks.push(headers), onTrailer: (trailers) => void rollbacks.push(trailers) },
    );
    expect(response.status).toBe(SERVING);
    expect(rollbacks.map((head) => [head.get("x-early"), head.get("x-late")])).toEqual([
      ["1", null],
      [null, "2"],
    ]);
    expect(seen.headers?.get("authorization")).toBeNull();
    expect(seen.headers?.get("x-postern-key-id")).toMatch(/^key_/);
    expect(seen.headers?.get("te")).toBe("trailers");
  });

  test("gRPC call without a valid key fails in the gate with the gRPC code of the rejection", async () => {
    const { health } = await openGrpc();
    seen.headers = undefined;
    const asked = health.check({ service: "" }, { headers: { authorization: "Bearer wrong" } });
    await expect(asked).rejects.toMatchObject({ code: Code.Unauthenticated });
    expect(seen.headers).toBeUndefined();
  });

  test("gRPC error of the app keeps its code and message", async () => {
    const { health } = await openGrpc();
    await expect(health.check({ service: "missing" })).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: "it is missing",
    });
  });

  test("gRPC deadline ends a call through the gate", async () => {
    const { health } = await openGrpc();
    await expect(health.check({ service: "slow" }, { timeoutMs: 200 })).rejects.toMatchObject({
      code: Code.DeadlineExceeded,
    });
  });

  test("gRPC call fails with UNAVAILABLE when the app is unreachable", async () => {
    const { health } = await openGrpc();
    expect((await health.check({ service: "" })).status).toBe(SERVING);
    for (const session of sessions) session.destroy();
    server?.close();
    await waitFor("the gate to notice", async () => {
      const failed = await health.check({ service: "" }).catch((error: unknown) => error);
      return failed instanceof ConnectError && failed.code === Code.Unavailable;
    });
  });
});

describe("a stream", () => {
  test("gRPC server stream delivers each message as it arrives", async () => {
    const { health } = await openGrpc();
    const got: number[] = [];
    for await (const { status } of health.watch({ service: "" })) got.push(status);
    expect(got).toEqual([SERVING, NOT_SERVING, SERVING]);
  });

  test("client cancellation of a gRPC stream cancels the upstream call and releases its slot", async () => {
    const { health } = await openGrpc();
    const cancel = new AbortController();
    const read = (async () => {
      for await (const _ of health.watch({ service: "open" }, { signal: cancel.signal })) cancel.abort();
    })();
    await expect(read).rejects.toMatchObject({ code: Code.Canceled });
    await waitFor("the app to hear of it", () => seen.signal?.aborted === true);
    await waitFor("the place to be free", async () =>
      /upstream_requests\{state="active"\} 0/.test(await gate.metrics()),
    );
  });

  test("bidirectional gRPC stream alternates messages in both directions", async () => {
    const { reflection } = await openGrpc();
    let answered = (): void => undefined;
    async function* ask() {
      for (const host of ["a", "b", "c"]) {
        const heard = new Promise<void>((resolve) => {
          answered = resolve;
        });
        yield { host };
        await heard;
      }
    }
    const got: string[] = [];
    for await (const { validHost } of reflection.serverReflectionInfo(ask())) {
      got.push(validHost);
      answered();
    }
    expect(got).toEqual(["heard a", "heard b", "heard c"]);
  });

  test("silent bidirectional gRPC stream stays open up to the stream idle timeout", async () => {
    const timeouts = { requestBodyIdleMs: 100, bodyIdleMs: 100, eventsIdleMs: 3_000 };
    const { reflection } = await openGrpc({ timeouts });
    const sides = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* ask() {
      yield { host: "a" };
      await sides[0]?.promise;
      yield { host: "b" };
      await sides[1]?.promise;
    }
    const got: string[] = [];
    const startedMs = performance.now();
    const read = (async () => {
      for await (const { validHost } of reflection.serverReflectionInfo(ask())) {
        got.push(validHost);
        // The gate checks for stalls once a second.
        if (got.length === 1) setTimeout(() => sides[0]?.resolve(), 2_200);
      }
    })();
    await expect(read).rejects.toBeInstanceOf(ConnectError);
    sides[1]?.resolve();
    expect(got).toEqual(["heard a", "heard b"]);
    expect(performance.now() - startedMs).toBeGreaterThan(2_200 + 3_000);
  }, 20_000);

  test("silent gRPC server stream stays open up to the stream idle timeout", async () => {
    const { health } = await openGrpc({ timeouts: { bodyIdleMs: 100, eventsIdleMs: 1_000 } });
    const startedMs = performance.now();
    let got = 0;
    const read = (async () => {
      for await (const _ of health.watch({ service: "open" })) got += 1;
    })();
    await expect(read).rejects.toBeInstanceOf(ConnectError);
    expect(got).toBe(3);
    expect(performance.now() - startedMs).toBeGreaterThan(1_000);
    await waitFor("the app to hear of it", () => seen.signal?.aborted === true);
  });

  test("gRPC stream is aborted when its key is revoked", async () => {
    const { health, key } = await openGrpc({ timeouts: { recheckMs: 50 } });
    let got = 0;
    const read = (async () => {
      for await (const _ of health.watch({ service: "open" })) {
        got += 1;
        if (got === 3) await gate.records.deleteKey(key);
      }
    })();
    await expect(read).rejects.toBeInstanceOf(ConnectError);
    await waitFor("the app to hear of it", () => seen.signal?.aborted === true);
  });
});

describe("an HTTP/2 app", () => {
  const openWith = async (listener: (stream: ServerHttp2Stream, path: string) => void, timeouts = {}) => {
    const upstream = await serve((http2) => {
      http2.on("stream", (stream: ServerHttp2Stream, headers) => {
        stream.on("error", () => undefined);
        listener(stream, headers[":path"] ?? "");
      });
    });
    gate = await openGate({ ...OPEN, timeouts, config: { upstream, upstreamProtocol: "h2c" } });
  };

  test("HTTP/2 app serves HTTP/1.1 clients with bodies and trailers in both directions", async () => {
    await openWith((stream) => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "abc" }));
      stream.pipe(stream);
    });
    const body = "x".repeat(3_000_000);
    const response = await call(gate.port, { method: "POST", path: "/a", body });
    expect(response.status).toBe(200);
    expect(response.body === body).toBe(true);
    expect(response.trailers["x-sum"]).toBe("abc");
  });

  test("gate opens a new upstream HTTP/2 session after GOAWAY without losing requests", async () => {
    await openWith((stream) => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    });
    for (let at = 0; at < 20; at += 1) {
      expect((await call(gate.port)).body).toBe("ok");
      const last = sessions.at(-1);
      last?.close();
      if (last !== undefined && !last.destroyed) await once(last, "close");
    }
    expect(sessions.length).toBeGreaterThan(10);
  });

  test.each<[string, (stream: ServerHttp2Stream) => void]>([
    ["resets its answer", (stream) => stream.destroy(new Error("broken"))],
    ["cancels its answer", (stream) => stream.destroy(Object.assign(new Error("given up"), { name: "AbortError" }))],
    ["ends its session", (stream) => stream.session?.destroy()],
    ["loses its connection", (stream) => stream.session?.socket.destroy()],
  ])("response of an HTTP/2 app that %s midway stays visibly incomplete", async (_name, end) => {
    await openWith((stream) => {
      stream.respond({ ":status": 200 });
      stream.write("part");
      setTimeout(() => end(stream), 50);
    });
    await expect(call(gate.port)).rejects.toThrow();
  });

  test("gate responds 502 when an HTTP/2 app resets the stream before its response", async () => {
    await openWith((stream) => stream.close(7));
    expect((await call(gate.port)).status).toBe(502);
  });

  test("gate responds 504 and releases the slot when an HTTP/2 app times out", async () => {
    await openWith(() => undefined, { headersMs: 100 });
    expect((await call(gate.port)).status).toBe(504);
    expect(await gate.metrics()).toMatch(/upstream_requests\{state="active"\} 0/);
  });

  test("gate gives up on an HTTP/2 app that neither reads nor responds", async () => {
    await openWith(() => undefined, { headersMs: 200 });
    const response = await call(gate.port, {
      method: "POST",
      headers: { "transfer-encoding": "chunked" },
      body: LARGE,
    });
    expect(response.status).toBe(504);
    expect(await gate.metrics()).toMatch(/upstream_requests\{state="active"\} 0/);
  });

  test("client content type application/grpc does not extend body timeouts for an HTTP/2 app", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestBodyIdleMs: 100, eventsIdleMs: 600_000 } });
    const session = connect(`http://127.0.0.1:${gate.port}`);
    try {
      const stream = session.request({ ":method": "POST", ":path": "/", "content-type": "application/grpc" });
      stream.write("x");
      const [head] = await once(stream, "response");
      expect(head["grpc-status"]).toBe("4");
      stream.destroy();
    } finally {
      session.destroy();
    }
  });

  test("server-sent events of an HTTP/2 app use the stream idle timeout", async () => {
    const events = { ":status": 200, "content-type": "text/event-stream" };
    await openWith(
      (stream) => {
        stream.respond(events);
        stream.write("data: 1\n\n");
        setTimeout(() => stream.end("data: 2\n\n"), 500);
      },
      { bodyIdleMs: 100, eventsIdleMs: 60_000 },
    );
    expect((await call(gate.port)).body).toBe("data: 1\n\ndata: 2\n\n");
  });

  test("gate spreads 300 concurrent requests over several upstream HTTP/2 sessions", async () => {
    const waiting: ServerHttp2Stream[] = [];
    await openWith((stream) => {
      waiting.push(stream);
      if (waiting.length === 300) {
        for (const one of waiting) {
          one.respond({ ":status": 200 });
          one.end("ok");
        }
      }
    });
    const responses = await Promise.all(Array.from({ length: 300 }, () => call(gate.port)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(300);
    expect(sessions.length).toBe(3);
  });
});
