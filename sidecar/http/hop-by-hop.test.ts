import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { HOP_BY_HOP, namedInConnection } from "../../core/policies/hop-by-hop.ts";
import { openGate, sendRaw, startApp, type TestApp, type TestGate } from "../../test/harness/gate.ts";

describe("`Connection`", () => {
  test.each([
    { connection: undefined, names: [] },
    { connection: "close", names: [] },
    { connection: "Upgrade, Keep-Alive", names: [] },
    { connection: " X-A ,, x-B,close", names: ["close", "x-a", "x-b"] },
    { connection: ["X-A", "X-B"], names: ["x-a", "x-b"] },
    { connection: "Authorization, COOKIE, Host, Content-Length, Sec-WebSocket-Key, X-Forwarded-For", names: [] },
    { connection: "X-Content-Type-Options, X-Forwarded", names: ["x-content-type-options", "x-forwarded"] },
  ])("hop-by-hop header `Connection: $connection` removes $names", ({ connection, names }) => {
    expect([...(namedInConnection(connection) ?? [])].sort()).toEqual(names);
  });
});

let gate: TestGate;
afterEach(() => gate?.close());

const RESPONSE_FIELDS = [
  "Keep-Alive: timeout=3",
  "Proxy-Authenticate: Basic",
  "Proxy-Connection: keep-alive",
  "TE: gzip",
  "X-Gone: 1",
  "X-Request-Id: hidden",
  "X-Stays: 1",
  "x-STAYS: 2",
  "Set-Cookie: a=b",
];

/** Starts an app that records the lines of the last head it received, and responds with hop-by-hop fields. */
async function startRawApp(firstLine: string, ...more: string[]): Promise<{ app: TestApp; fields(): string[] }> {
  const app = await startApp();
  let fields: string[] = [];
  const onRequest = (req: { rawHeaders: string[] }, socket: Socket): void => {
    fields = [];
    for (let i = 0; i < req.rawHeaders.length; i += 2) fields.push(`${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}`);
    socket.on("error", () => {}).end([firstLine, ...RESPONSE_FIELDS, ...more, "", ""].join("\r\n"));
  };
  app.server.removeAllListeners("request");
  app.server.on("request", (req) => onRequest(req, req.socket));
  app.server.on("upgrade", (req, socket: Socket) => onRequest(req, socket));
  return { app, fields: () => fields };
}

const lower = (fields: readonly string[]): string[] => fields.map((field) => field.toLowerCase());
const fieldsOf = (text: string): string[] => lower(text.split("\r\n\r\n")[0]?.split("\r\n").slice(1) ?? []);
const namesOf = (fields: readonly string[]): string[] => fields.map((field) => field.split(":")[0] ?? "");

describe.each([
  {
    what: "a request",
    connection: "Connection: close",
    response: ["HTTP/1.1 200 OK", "Connection: X-Gone, close, X-Request-Id, Set-Cookie", "Content-Length: 0"],
    adds: ["connection"],
  },
  {
    what: "an upgrade that is declined",
    connection: "Connection: Upgrade",
    response: ["HTTP/1.1 403 No", "Connection: X-Gone, close, X-Request-Id, Set-Cookie", "Content-Length: 0"],
    adds: ["connection"],
  },
  {
    what: "an upgrade",
    connection: "Connection: Upgrade",
    response: ["HTTP/1.1 101 Yes", "Connection: Upgrade, X-Gone, X-Request-Id, Set-Cookie", "Upgrade: websocket"],
    adds: ["connection", "upgrade"],
  },
])("fields of $what", ({ what, connection, response, adds }) => {
  const [firstLine = "", ...more] = response;

  test("hop-by-hop headers are removed and headers of the gate are kept", async () => {
    const { app, fields } = await startRawApp(firstLine, ...more);
    gate = await openGate({ app });
    const key = await gate.records.putKey({ keyId: "key_hop" });
    const request = [
      "GET /a HTTP/1.1",
      "Host: a",
      connection,
      "Connection: X-Gone, Authorization, Cookie, X-Postern-Key-Id, X-Postern-Request-Id, X-Forwarded-For, X-API-Key, Host",
      "Upgrade: websocket",
      "Keep-Alive: timeout=3",
      "Proxy-Authorization: Basic cHJveHk=",
      "Proxy-Connection: keep-alive",
      "TE: trailers, gzip",
      "Trailer: X-Gone",
      "X-Gone: 1",
      "X-Stays: 1",
      "Authorization: Basic YXBw",
      "Cookie: a=b",
      "X-Forwarded-For: 203.0.113.7",
      "X-Postern-Key-Id: key_forged",
      `X-API-Key: ${key}`,
    ];
    const { text } = await sendRaw(gate.port, `${request.join("\r\n")}\r\n\r\n`);

    const sent = lower(fields());
    const isUpgrade = what !== "a request";
    const hops = namesOf(sent).filter((name) => HOP_BY_HOP.has(name) || name === "x-gone" || name === "x-api-key");
    // Describes the gate's own connection to the app, which the client does not control.
    expect(sent).toContain(isUpgrade ? "connection: upgrade" : "connection: keep-alive");
    expect(hops.sort()).toEqual(isUpgrade ? ["connection", "upgrade"] : ["connection"]);
    expect(sent).toEqual(expect.arrayContaining(["host: a", "x-stays: 1", "authorization: basic yxbw", "cookie: a=b"]));
    expect(sent).toContain("x-forwarded-for: 203.0.113.7");
    expect(sent.filter((field) => field.startsWith("x-postern-key-id"))).toEqual(["x-postern-key-id: key_hop"]);
    expect(sent.filter((field) => field.startsWith("x-postern-request-id: req_"))).toHaveLength(1);

    const got = fieldsOf(text);
    const gotHops = namesOf(got).filter((name) => HOP_BY_HOP.has(name) || name === "x-gone");
    expect(gotHops.sort()).toEqual(adds);
    expect(got).toEqual(expect.arrayContaining(["x-stays: 1", "x-stays: 2", "set-cookie: a=b"]));
    expect(got.filter((field) => field.startsWith("x-request-id"))).toEqual([expect.stringMatching(/: req_/)]);
  });
});

/** Fields that control how a client handles the response, which it has read by the time of the trailers. */
const NO_TRAILERS =
  "Content-Encoding: gzip\r\nSet-Cookie: a=b\r\nCache-Control: public\r\nLocation: /a\r\nX-Request-ID: forged\r\nRateLimit-Remaining: 9\r\n";

test("trailers exclude forbidden fields and fields that `Connection` lists", async () => {
  const app = await startApp();
  app.server.removeAllListeners("request");
  app.server.on("request", (req) => {
    const head =
      "HTTP/1.1 200 OK\r\nConnection: X-Gone\r\nTrailer: X-Gone, X-Stays\r\nTransfer-Encoding: chunked\r\n\r\n";
    req.socket.write(`${head}2\r\nok\r\n0\r\nX-Gone: 1\r\nX-Stays: 1\r\nKeep-Alive: a\r\n${NO_TRAILERS}\r\n`);
  });
  gate = await openGate({ app });
  const key = await gate.records.putKey();
  const { text } = await sendRaw(
    gate.port,
    `GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-API-Key: ${key}\r\n\r\n`,
  );
  expect(text.slice(text.indexOf("\r\n\r\n")).toLowerCase()).toBe("\r\n\r\n2\r\nok\r\n0\r\nx-stays: 1\r\n\r\n");
});
