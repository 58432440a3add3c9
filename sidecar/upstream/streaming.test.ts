import { once } from "node:events";
import { Agent, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  call,
  type GateOptions,
  kindOf,
  OPEN,
  openGate,
  readAll,
  sendRaw,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";
import { freePort } from "../../test/harness/ports.ts";

/* Requests and responses are streamed: data is neither delayed nor accumulated, and each side is notified when the other ends. */

const MiB = 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024, "x");

let gate: TestGate;
afterEach(() => gate.close());

type Listener = (req: IncomingMessage, res: ServerResponse) => void;
async function openTo(listener: Listener, options: GateOptions = {}): Promise<TestGate> {
  gate = await openGate({ ...OPEN, ...options, app: await startApp(listener) });
  return gate;
}

describe("responses", () => {
  test("gate streams response chunks as they arrive, after the head", async () => {
    const steps = Promise.withResolvers<ServerResponse>();
    await openTo((_req, res) => {
      res.writeHead(200, { "Content-Type": "text/event-stream" });
      res.flushHeaders();
      steps.resolve(res);
    });
    const req = request({ port: gate.port, host: "127.0.0.1", agent: false }).end();
    const [res] = (await once(req, "response")) as [IncomingMessage];
    const app = await steps.promise;
    for (const piece of ["one", "two"]) {
      app.write(piece);
      const [chunk] = await once(res, "data");
      expect(String(chunk)).toBe(piece);
    }
    app.end();
    await once(res, "end");
  });

  test("gate forwards a response head with Content-Length before its body", async () => {
    const steps = Promise.withResolvers<ServerResponse>();
    await openTo((_req, res) => {
      res.writeHead(200, { "Content-Length": 3 });
      res.flushHeaders();
      steps.resolve(res);
    });
    const req = request({ port: gate.port, host: "127.0.0.1", agent: false }).end();
    const [res] = (await once(req, "response")) as [IncomingMessage];
    (await steps.promise).end("abc");
    let body = "";
    for await (const chunk of res) body += chunk;
    expect(body).toBe("abc");
  });

  test("gate pauses the app without using more memory when a client stops reading", async () => {
    let written = 0;
    let isBlocked = false;
    await openTo((_req, res) => {
      const more = () => {
        while (!res.destroyed && written < 512 * MiB) {
          written += CHUNK.length;
          if (!res.write(CHUNK)) {
            isBlocked = true;
            return;
          }
        }
        res.end();
      };
      res.on("drain", () => {
        isBlocked = false;
        more();
      });
      more();
    });
    const before = process.memoryUsage().rss;
    const socket = connect(gate.port, "127.0.0.1");
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // The buffers of three sockets are full and stay full, because no data is read.
    let last = -1;
    await waitFor(
      "the app to be paused",
      () => {
        const isStill = isBlocked && written > 0 && written === last;
        last = written;
        return isStill;
      },
      { everyMs: 250 },
    );
    expect(written).toBeLessThan(64 * MiB);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MiB);
    socket.destroy();
    await once(socket, "close");
  });

  test("responses to HEAD and with 204 or 304 keep the connection open", async () => {
    await openTo((req, res) => {
      if (req.url === "/204") res.writeHead(204).end();
      else if (req.url === "/304") res.writeHead(304, { ETag: '"a"' }).end();
      else res.writeHead(200, { "Content-Length": 5 }).end("hello");
    });
    const socket = connect(gate.port, "127.0.0.1");
    const read = readAll(socket);
    socket.write(
      "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    await waitFor("the last answer", () => read().endsWith("hello"));
    const responses = read().split("HTTP/1.1 ").slice(1);
    expect(responses.map((response) => [response.slice(0, 3), response.split("\r\n\r\n")[1]])).toEqual([
      ["200", ""],
      ["204", ""],
      ["304", ""],
      ["200", "hello"],
    ]);
    expect(responses[0]).toContain("content-length: 5");
    expect(responses[2]).toContain('etag: "a"');
    socket.destroy();
    await once(socket, "close");
  });

  test("gate forwards repeated response headers and removes hop-by-hop headers", async () => {
    await openTo((_req, res) => {
      res.writeHead(201, "Made Here", [
        ["Set-Cookie", "a=1"],
        ["Set-Cookie", "b=2"],
        ["Connection", "keep-alive, X-Hop"],
        ["X-Hop", "gone"],
        ["Proxy-Authenticate", "Basic"],
        ["X-Stays", "here"],
        ["X-Request-Id", "the-app's"],
      ]);
      res.end();
    });
    const { status, headers } = await call(gate.port);
    expect(status).toBe(201);
    expect(headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect([headers["x-hop"], headers["proxy-authenticate"], headers["x-stays"]]).toEqual([
      undefined,
      undefined,
      "here",
    ]);
    expect(headers["x-request-id"]).toBe("the-app's");
  });

  test("gate forwards response trailers", async () => {
    await openTo((_req, res) => {
      res.writeHead(200, { Trailer: "X-Checksum" });
      res.write("body");
      res.addTrailers({ "X-Checksum": "abc" });
      res.end();
    });
    const { body, trailers, headers } = await call(gate.port);
    expect({ body, trailers, trailer: headers.trailer }).toEqual({
      body: "body",
      trailers: { "x-checksum": "abc" },
      trailer: "X-Checksum",
    });
  });

  test("gate closes the client connection on a truncated response", async () => {
    await openTo((_req, res) => {
      res.writeHead(200, { "Content-Length": 100 });
      res.write("half");
      setImmediate(() => res.socket?.resetAndDestroy());
    });
    await expect(call(gate.port)).rejects.toThrow(/aborted|ECONNRESET|socket hang up/);
  });
});

describe("request bodies", () => {
  test("gate streams request chunks as they arrive, chunked or with a length", async () => {
    const pieces: string[] = [];
    const framings: unknown[] = [];
    await openTo((req, res) => {
      framings.push(req.headers["transfer-encoding"] ?? req.headers["content-length"]);
      req.on("data", (chunk) => pieces.push(String(chunk)));
      req.on("end", () => res.end());
    });
    const rest = "two".padEnd(100_000, " ");
    for (const headers of [{ "Transfer-Encoding": "chunked" }, { "Content-Length": "100003" }]) {
      pieces.length = 0;
      const req = request({ port: gate.port, host: "127.0.0.1", agent: false, method: "POST", headers });
      req.write("one");
      await waitFor("the first piece", () => pieces.join("") === "one");
      req.end(rest);
      await once(req, "response").then(([res]) => (res as IncomingMessage).resume());
      expect(pieces.join("")).toBe(`one${rest}`);
    }
    expect(framings).toEqual(["chunked", "100003"]);
  });

  test.each(["GET", "DELETE", "PUT", "OPTIONS", "PROPFIND"])(
    "gate forwards the body of a %s request",
    async (method) => {
      await openTo(async (req, res) => {
        let body = "";
        for await (const chunk of req) body += chunk;
        res.end(`${req.method} ${body}`);
      });
      const headers = { "Content-Length": "4" };
      expect((await call(gate.port, { method, body: "body", headers })).body).toBe(`${method} body`);
    },
  );

  test("gate pauses the client when the app stops reading", async () => {
    const stalled = Promise.withResolvers<IncomingMessage>();
    await openTo((req) => {
      req.pause();
      stalled.resolve(req);
    });
    const req = request({ port: gate.port, host: "127.0.0.1", agent: false, method: "POST" });
    req.on("error", () => {});
    req.write(CHUNK);
    await stalled.promise;
    let written = 0;
    let flushed = 0;
    const onFlushed = () => {
      flushed += CHUNK.length;
    };
    const push = () => {
      while (written < 256 * MiB) {
        written += CHUNK.length;
        if (!req.write(CHUNK, onFlushed)) return;
      }
    };
    req.on("drain", push);
    push();
    let last = -1;
    await waitFor(
      "the client to be paused",
      () => {
        const isStill = flushed > 0 && flushed === last;
        last = flushed;
        return isStill;
      },
      { everyMs: 250 },
    );
    expect(flushed).toBeLessThan(64 * MiB);
    req.destroy();
  });

  test("gate drains a body after an early response so that the client receives the response", async () => {
    await openTo((_req, res) => res.writeHead(413).end("too large"));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const send = async () => {
      const req = request({ port: gate.port, host: "127.0.0.1", agent, method: "POST" });
      req.end(Buffer.alloc(512 * 1024));
      const [res] = (await once(req, "response")) as [IncomingMessage];
      let body = "";
      for await (const chunk of res) body += chunk;
      return [res.statusCode, body];
    };
    expect([await send(), await send()]).toEqual([
      [413, "too large"],
      [413, "too large"],
    ]);
    agent.destroy();
  });

  test("gate drains rejected request bodies up to a limit, then closes the connection", async () => {
    gate = await openGate({ config: { limits: { drainBytesMax: MiB } } });
    const body = (bytes: number) => call(gate.port, { method: "POST", body: Buffer.alloc(bytes) });
    expect((await body(MiB / 2)).status).toBe(401);
    const req = request({ port: gate.port, host: "127.0.0.1", agent: false, method: "POST" });
    req.on("error", () => {});
    const timer = setInterval(() => req.write(CHUNK), 1);
    await once(req, "close");
    clearInterval(timer);
    expect(gate.app.seen).toEqual([]);
  });
});

describe("Expect: 100-continue", () => {
  const expectant = (...headers: string[]) =>
    `${["POST /a HTTP/1.1", "Host: a", "Content-Length: 4", "Expect: 100-continue", ...headers].join("\r\n")}\r\n\r\n`;

  test("gate decides before it forwards 100 Continue and reads the body", async () => {
    gate = await openGate();
    const key = await gate.records.putKey();
    const socket = connect(gate.port, "127.0.0.1");
    const read = readAll(socket);
    socket.write(expectant(`X-API-Key: ${key}`));
    await waitFor("the 100", () => read() === "HTTP/1.1 100 Continue\r\n\r\n");
    expect(gate.app.seen).toEqual([]);
    socket.write("body");
    await waitFor("the answer", () => read().endsWith("ok"));
    expect(gate.app.seen[0]).toMatchObject({ body: "body" });
    expect(gate.app.seen[0]?.headers.expect).toBeUndefined();
    socket.destroy();
    await once(socket, "close");
  });

  test("gate rejects a request without sending 100 Continue and closes the connection", async () => {
    gate = await openGate();
    const { status, text } = await sendRaw(gate.port, expectant());
    expect(status).toBe(401);
    expect(text).not.toContain("100 Continue");
  });
});

describe("disconnects and errors", () => {
  test("client disconnect aborts the upstream request", async () => {
    const arrived = Promise.withResolvers<IncomingMessage>();
    await openTo((req) => arrived.resolve(req), { timeouts: { halfClosedMs: 100 } });
    const req = request({ port: gate.port, host: "127.0.0.1", agent: false });
    req.on("error", () => {});
    req.end();
    const atApp = await arrived.promise;
    const closed = once(atApp.socket, "close");
    req.destroy();
    await closed;
    await waitFor("nothing to be under way", async () =>
      (await gate.metrics()).includes("postern_sidecar_in_flight 0"),
    );
  });

  test("client disconnect during the request body aborts the upstream request", async () => {
    const broken = Promise.withResolvers<void>();
    await openTo((req) => {
      req.on("error", () => broken.resolve());
      req.resume();
    });
    const req = request({ port: gate.port, host: "127.0.0.1", agent: false, method: "POST" });
    req.on("error", () => {});
    req.write("half");
    await once(req, "socket");
    setImmediate(() => req.destroy());
    const { server } = gate.app;
    await Promise.race([broken.promise, waitFor("the app to be left", async () => (await connections(server)) === 0)]);
  });

  test("gate responds 502 when the app is unreachable", async () => {
    gate = await openGate({ ...OPEN, config: { upstream: `http://127.0.0.1:${await freePort()}` } });
    const response = await call(gate.port);
    expect([response.status, kindOf(response)]).toEqual([502, "upstream_unreachable"]);
  });

  test("gate responds 502 without a retry when the app disconnects before responding", async () => {
    let asked = 0;
    await openTo((req) => {
      asked += 1;
      req.socket.destroy();
    });
    expect((await call(gate.port)).status).toBe(502);
    expect(asked).toBe(1);
  });

  test("gate responds 502 when the app does not speak HTTP", async () => {
    const port = await freePort();
    const sockets = new Set<Socket>();
    const other = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("data", () => socket.write("220 smtp.example.org\r\n"));
    }).listen(port, "127.0.0.1");
    await once(other, "listening");
    gate = await openGate({ ...OPEN, config: { upstream: `http://127.0.0.1:${port}` } });
    expect((await call(gate.port)).status).toBe(502);
    for (const socket of sockets) socket.destroy();
    other.close();
  });

  test("gate responds 504 and releases the slot when the app neither reads nor responds", async () => {
    await openTo((req) => req.socket.pause(), { timeouts: { headersMs: 200 } });
    const socket = connect(gate.port, "127.0.0.1");
    const read = readAll(socket);
    const bytes = 64 * MiB;
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`);
    socket.write(Buffer.alloc(bytes));
    await waitFor("the response", () => read().startsWith("HTTP/1.1 504 "));
    socket.destroy();
    expect(await gate.metrics()).toContain('postern_sidecar_upstream_requests{state="active"} 0');
  });

  test("gate responds 504 when the app does not respond in time", async () => {
    await openTo(() => {}, { timeouts: { headersMs: 100 } });
    const response = await call(gate.port);
    expect([response.status, kindOf(response)]).toEqual([504, "upstream_timeout"]);
  });

  test("gate closes the client connection when a response stalls", async () => {
    await openTo((_req, res) => void res.write("half"), { timeouts: { bodyIdleMs: 100 } });
    await expect(call(gate.port)).rejects.toThrow();
  });

  test("gate responds 408 when a body stalls, and aborts the upstream request", async () => {
    await openTo((req) => void req.resume(), { timeouts: { requestBodyIdleMs: 100 } });
    const head = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf";
    expect((await sendRaw(gate.port, head)).status).toBe(408);
  });
});

const connections = (server: import("node:http").Server): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
