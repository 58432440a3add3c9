import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CertificateFolder, openCertificateFolder } from "../../test/harness/certificate.ts";
import { waitFor } from "../../test/harness/wait.ts";
import type { AppOptions } from "../app.ts";
import { prepareDrain } from "../lifecycle/shutdown.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/*
 * The direct front and fastify send the same responses to the same requests. A request with a Trailer header is left to Node, and its
 * handler behaves the same, so each case is sent without and with that header.
 */

const KINDS = ["plain", "by TLS", "behind a proxy"] as const;
type Kind = (typeof KINDS)[number];
/** Client address that the proxy forwards. */
const CLIENT = "203.0.113.7";

let kind: Kind;
let t: TestApp;
let port: number;
let apiId: string;
let key: string;
let limitedKey: string;
let addressKey: string;
let poorRootKey: string;
let quotaRootKey: string;
let certificates: CertificateFolder;
beforeAll(() => {
  certificates = openCertificateFolder();
});
afterAll(() => certificates.remove());

const optionsOf = (): AppOptions => {
  if (kind === "by TLS") return { certificate: certificates.make("api") };
  return kind === "plain" ? {} : { trustedProxies: ["127.0.0.1", "198.51.100.0/24"] };
};

async function start(of: Kind): Promise<void> {
  kind = of;
  t = await buildTestApp(optionsOf());
  port = await listen(t);
  ({ apiId } = await t.data("apis.createApi", { name: "direct" }));
  ({ key } = await t.data("keys.createKey", { apiId, name: "schlüssel 🔑", meta: { größe: "ß" } }));
  const ratelimits = [{ name: "strict", limit: 1000, duration: 3_600_000, autoApply: true }];
  ({ key: limitedKey } = await t.data("keys.createKey", { apiId, ratelimits }));
  const { apiId: listedId } = await t.data("apis.createApi", { name: "listed" });
  await t.deps.db.query("update apis set ip_allow_list = $2 where id = $1", [listedId, [CLIENT]]);
  ({ key: addressKey } = await t.data("keys.createKey", { apiId: listedId }));
  poorRootKey = await t.rootKey(["api.*.read_api"]);
  const workspace = await t.makeWorkspace();
  quotaRootKey = workspace.rootKey;
  await t.deps.db.query("update workspaces set quota_per_minute = 0 where id = $1", [workspace.id]);
}

async function listen({ app }: TestApp): Promise<number> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

interface Sent {
  readonly path?: string;
  readonly body: string | Buffer;
  readonly rootKey?: string | undefined;
  readonly lines?: string | undefined;
  readonly version?: string;
  readonly contentType?: string;
}

function requestOf({
  path = "keys.verifyKey",
  body,
  rootKey = t.workspace.rootKey,
  lines = kind === "behind a proxy" ? `X-Forwarded-For: ${CLIENT}\r\n` : "",
  version = "1.1",
  contentType = "application/json",
}: Sent): Buffer {
  const head = `POST /v2/${path} HTTP/${version}\r\nHost: a\r\nAuthorization: Bearer ${rootKey}\r\nContent-Type: ${contentType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${lines}\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}

const verifying = (of: string, lines?: string): Buffer => requestOf({ body: JSON.stringify({ key: of }), lines });

interface HttpResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

/** Returns the complete responses and ignores the data after them. */
function readResponses(received: Buffer): HttpResponse[] {
  const responses: HttpResponse[] = [];
  for (let at = 0; ; ) {
    const end = received.indexOf("\r\n\r\n", at);
    if (end === -1) return responses;
    const [first = "", ...lines] = received.toString("latin1", at, end).split("\r\n");
    const fields = lines.map((line) => [
      line.slice(0, line.indexOf(":")).toLowerCase(),
      line.slice(line.indexOf(":") + 2),
    ]);
    const headers = Object.fromEntries(fields) as Record<string, string>;
    at = end + 4 + Number(headers["content-length"] ?? 0);
    if (received.length < at) return responses;
    responses.push({ status: Number(first.split(" ")[1]), headers, text: received.toString("utf8", end + 4, at) });
  }
}

function open(to = port): { socket: Socket; responds: () => HttpResponse[]; closed: Promise<void> } {
  const address = { host: "127.0.0.1", port: to, allowHalfOpen: true };
  const socket = kind === "by TLS" ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece)).on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("end", () => socket.end());
  return { socket, responds: () => readResponses(Buffer.concat(pieces)), closed };
}

/** Sends chunks with short pauses and returns the expected number of responses. */
async function exchange(count: number, ...pieces: Buffer[]): Promise<HttpResponse[]> {
  const { socket, responds } = open();
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await sleep(20);
    socket.write(piece);
  }
  await waitFor(`${count} answers`, () => responds().length >= count);
  socket.destroy();
  return responds();
}

const servedDirectly = async (work: () => Promise<unknown>): Promise<boolean> => {
  const before = t.app.direct?.lastRequestMs();
  await work();
  return t.app.direct?.lastRequestMs() !== before;
};

/** A request for which the direct front has no route. */
const otherRequest = (): Buffer => requestOf({ path: "apis.getApi", body: `{"apiId":"api_missing0"}` });

const chunkedHead = (): string =>
  `POST /v2/apis.getApi HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${t.workspace.rootKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;

const cut = (bytes: Buffer, ...at: number[]): Buffer[] =>
  [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));

const statuses = (responses: readonly HttpResponse[]): number[] => responses.map(({ status }) => status);

/** Removes the parts that differ between any two responses. */
const TIME_HEADERS = ["date", "ratelimit-reset", "retry-after"];

const comparable = ({ status, headers, text }: HttpResponse | undefined = { status: 0, headers: {}, text: "" }) => ({
  status,
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, TIME_HEADERS.includes(name) ? typeof value : value]),
  ),
  text: text.replace(/req_\w+/, "req_").replace(/"(reset|remaining)":\d+/g, '"$1":0'),
});

describe.each(KINDS)("%s", (of) => {
  beforeAll(() => start(of));
  afterAll(() => t.close());

  describe("both fronts respond alike", () => {
    const limit = { namespace: "direct", identifier: "a", limit: 1000, duration: 3_600_000 };
    test.each<{ name: string; status: number; sent: () => Sent }>([
      { name: "a valid key", status: 200, sent: () => ({ body: JSON.stringify({ key }) }) },
      { name: "an unknown key", status: 200, sent: () => ({ body: JSON.stringify({ key: "no" }) }) },
      { name: "a strict limit", status: 200, sent: () => ({ body: JSON.stringify({ key: limitedKey }) }) },
      { name: "a limit", status: 200, sent: () => ({ path: "ratelimit.limit", body: JSON.stringify(limit) }) },
      {
        name: "several limits",
        status: 200,
        sent: () => ({ path: "ratelimit.multiLimit", body: JSON.stringify([limit, { ...limit, identifier: "b" }]) }),
      },
      { name: "an unknown root key", status: 401, sent: () => ({ body: JSON.stringify({ key }), rootKey: "unknown" }) },
      { name: "a header without a token", status: 401, sent: () => ({ body: JSON.stringify({ key }), rootKey: "" }) },
      { name: "no permission", status: 403, sent: () => ({ body: JSON.stringify({ key }), rootKey: poorRootKey }) },
      { name: "a spent quota", status: 429, sent: () => ({ body: JSON.stringify({ key }), rootKey: quotaRootKey }) },
      { name: "no JSON", status: 400, sent: () => ({ body: "{" }) },
      { name: "no UTF-8", status: 400, sent: () => ({ body: Buffer.from([0x22, 0xff, 0x22]) }) },
      { name: "an unknown member", status: 400, sent: () => ({ body: JSON.stringify({ key, ünknown: 1 }) }) },
      {
        name: "problem details",
        status: 400,
        sent: () => ({ body: "{}", lines: "Accept: application/problem+json\r\n" }),
      },
      {
        name: "a media type with a parameter",
        status: 200,
        sent: () => ({ body: JSON.stringify({ key }), contentType: "application/json; charset=utf-8" }),
      },
    ])("direct front and Node front respond identically: $name", async ({ status, sent }) => {
      let direct: HttpResponse[] = [];
      let usual: HttpResponse[] = [];
      const request = sent();
      const lines = request.lines ?? "";
      expect(await servedDirectly(async () => (direct = await exchange(1, requestOf(request))))).toBe(true);
      const other = requestOf({ ...request, lines: `${lines}Trailer: none\r\n` });
      expect(await servedDirectly(async () => (usual = await exchange(1, other)))).toBe(false);
      expect(direct[0]?.status).toBe(status);
      expect(comparable(direct[0])).toEqual(comparable(usual[0]));
    });
  });

  describe("both fronts find the same client address", () => {
    test.each<{ name: string; said: string[]; code: "VALID" | "FORBIDDEN"; isDirect?: false }>([
      { name: "no proxy says one", said: [], code: "FORBIDDEN" },
      { name: "one proxy", said: [CLIENT], code: "VALID" },
      { name: "with a port", said: [`${CLIENT}:4711`], code: "VALID" },
      { name: "two proxies that are trusted", said: [`${CLIENT} ,\t198.51.100.9 `], code: "VALID" },
      { name: "one that is not trusted", said: [`${CLIENT}, 192.0.2.1`], code: "FORBIDDEN" },
      { name: "what the client says itself", said: [`${CLIENT}, 203.0.113.8`], code: "FORBIDDEN" },
      { name: "no address", said: [`${CLIENT}, nonsense`], code: "FORBIDDEN" },
      { name: "nothing", said: [""], code: "FORBIDDEN" },
      { name: "commas", said: [`${CLIENT},, ,`], code: "VALID" },
      { name: "two headers", said: [CLIENT, "198.51.100.9"], code: "VALID", isDirect: false },
    ])("direct front and Node front derive the same client address: $name", async ({ said, code, isDirect = true }) => {
      const lines = said.map((value) => `x-forwarded-for: ${value}\r\n`).join("");
      const ask = async (more: string) => {
        const [response] = await exchange(1, verifying(addressKey, lines + more));
        return JSON.parse(response?.text ?? "").data.code;
      };
      const isTrusted = of === "behind a proxy";
      const expected = isTrusted ? code : "FORBIDDEN";
      const wasDirect = await servedDirectly(async () => expect(await ask("")).toBe(expected));
      expect(wasDirect).toBe(isDirect || !isTrusted);
      expect(await ask("Trailer: none\r\n")).toBe(expected);
    });
  });

  describe("unusual requests are left to Node", () => {
    const body = () => JSON.stringify({ key });
    test.each<{ name: string; status: number; sent: () => Buffer }>([
      { name: "an expectation", status: 100, sent: () => verifying(key, "Expect: 100-continue\r\n") },
      { name: "an unknown expectation", status: 417, sent: () => verifying(key, "Expect: more\r\n") },
      { name: "a connection that ends", status: 200, sent: () => verifying(key, "connection: close\r\n") },
      { name: "HTTP/1.0", status: 200, sent: () => requestOf({ body: body(), version: "1.0" }) },
      { name: "an encoding", status: 400, sent: () => verifying(key, "content-encoding: gzip\r\n") },
      { name: "two root keys", status: 200, sent: () => verifying(key, "AUTHORIZATION: Bearer other\r\n") },
      { name: "two lengths", status: 400, sent: () => verifying(key, "Content-Length: 3\r\n") },
      { name: "another media type", status: 400, sent: () => requestOf({ body: body(), contentType: "text/plain" }) },
      { name: "an empty body", status: 400, sent: () => requestOf({ body: "" }) },
      { name: "a query", status: 200, sent: () => requestOf({ path: "keys.verifyKey?a=b", body: body() }) },
      {
        name: "another procedure",
        status: 200,
        sent: () => requestOf({ path: "apis.getApi", body: `{"apiId":"${apiId}"}` }),
      },
      { name: "a large body", status: 400, sent: () => requestOf({ body: JSON.stringify("x".repeat(300_000)) }) },
      { name: "no HTTP", status: 400, sent: () => Buffer.from("hello\r\n\r\n") },
      { name: "a large head", status: 431, sent: () => verifying(key, `x: ${"y".repeat(20_000)}\r\n`) },
      {
        name: "chunks",
        status: 200,
        sent: () =>
          Buffer.from(
            `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${t.workspace.rootKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body().length.toString(16)}\r\n${body()}\r\n0\r\n\r\n`,
          ),
      },
    ])("direct front passes an unusual request to Node, which responds $status: $name", async ({ status, sent }) => {
      let responses: HttpResponse[] = [];
      expect(await servedDirectly(async () => (responses = await exchange(1, sent())))).toBe(false);
      expect(responses[0]?.status).toBe(status);
      // The request follows a plain call in the same write on the same connection.
      const together = await exchange(2, Buffer.concat([verifying(key), sent()]));
      expect(statuses(together).slice(0, 2)).toEqual([200, status]);
      expect(statuses(await exchange(2, verifying(limitedKey), sent())).slice(0, 2)).toEqual([200, status]);
    });
  });

  describe("awkward clients", () => {
    test("direct front responds to pipelined requests in order", async () => {
      const some = [verifying(key), verifying(limitedKey), verifying("no"), requestOf({ body: "{" })];
      const responses = await exchange(40, Buffer.concat(Array.from({ length: 10 }, () => some).flat()));
      expect(statuses(responses)).toEqual(Array.from({ length: 10 }, () => [200, 200, 200, 400]).flat());
      const codes = responses.slice(0, 3).map(({ text }) => JSON.parse(text).data.code);
      expect(codes).toEqual(["VALID", "VALID", "NOT_FOUND"]);
      expect(JSON.parse(responses[1]?.text ?? "").data.ratelimits).toHaveLength(1);
    });

    test("direct front and Node front alternate on one connection", async () => {
      const other = otherRequest();
      const responses = await exchange(
        5,
        Buffer.concat([verifying(limitedKey), verifying(key), other, verifying(key), other]),
      );
      expect(statuses(responses)).toEqual([200, 200, 404, 200, 404]);
    });

    test.each<{ name: string; status: number; pieces: () => Buffer[] }>([
      { name: "another procedure", status: 404, pieces: () => [otherRequest()] },
      {
        name: "a chunked body in parts",
        status: 404,
        pieces: () => [
          Buffer.from(`${chunkedHead()}5\r\n{"api`),
          Buffer.from('\r\n13\r\nId":"api_missing0"}'),
          Buffer.from("\r\n0\r\n\r\n"),
        ],
      },
      { name: "a large body", status: 400, pieces: () => [requestOf({ body: JSON.stringify("x".repeat(300_000)) })] },
      { name: "a slow head", status: 200, pieces: () => cut(verifying(key), 30) },
    ])("connection returns to the direct front after Node has handled $name", async ({ status, pieces }) => {
      const { socket, responds } = open();
      socket.write(verifying(key));
      await waitFor("the first response", () => responds().length === 1);
      expect(
        await servedDirectly(async () => {
          for (const piece of pieces()) {
            socket.write(piece);
            await sleep(600);
          }
          await waitFor("the response of Node", () => responds().length === 2);
        }),
      ).toBe(false);
      expect(
        await servedDirectly(async () => {
          socket.write(verifying(limitedKey));
          await waitFor("the last response", () => responds().length === 3);
        }),
      ).toBe(true);
      expect(statuses(responds())).toEqual([200, status, 200]);
      socket.destroy();
    });

    test("malformed chunk after a well-formed head gets 400 and closes the connection", async () => {
      const { socket, responds, closed } = open();
      socket.write(otherRequest());
      await waitFor("the first response", () => responds().length === 1);
      socket.write(chunkedHead());
      await sleep(50);
      socket.write("not hexadecimal\r\n");
      await closed;
      expect(statuses(responds())).toEqual([404, 400]);
    });

    test("direct front accepts a request split at any byte", async () => {
      const request = verifying(key);
      const cuts = [1, 5, 20, request.indexOf("\r\n\r\n") + 3, request.indexOf("\r\n\r\n") + 4, request.length - 1];
      for (const cut of cuts) {
        let responses: HttpResponse[] = [];
        const pieces = [request.subarray(0, cut), request.subarray(cut)];
        expect(await servedDirectly(async () => (responses = await exchange(1, ...pieces)))).toBe(true);
        expect(JSON.parse(responses[0]?.text ?? "").data.code).toBe("VALID");
      }
    });

    test("direct front serves a request whose body arrives shortly after its head", async () => {
      const request = verifying(key);
      const cut = request.indexOf("\r\n\r\n") + 4;
      const pieces = [
        request.subarray(0, cut),
        request.subarray(cut),
        request.subarray(0, cut + 2),
        request.subarray(cut + 2),
      ];
      expect(await servedDirectly(() => exchange(2, ...pieces))).toBe(true);
    });

    test("direct front passes a request with a slow body to Node", async () => {
      const request = verifying(key);
      const { socket, responds } = open();
      socket.write(request.subarray(0, -3));
      await sleep(800);
      expect(
        await servedDirectly(async () => {
          for (const byte of request.subarray(-3)) socket.write(Buffer.of(byte));
          await waitFor("the answer", () => responds().length === 1);
        }),
      ).toBe(false);
      expect(statuses(responds())).toEqual([200]);
      socket.destroy();
    });

    test.each([
      { name: "after its requests", cut: 0, expected: [200, 200, 200] },
      { name: "in the middle of a body", cut: 3, expected: [200, 200, 400] },
      { name: "in the middle of a head", cut: 150, expected: [200, 200, 400] },
    ])(
      "client that half-closes its connection $name gets its responses from the direct front",
      async ({ cut, expected }) => {
        const { socket, responds, closed } = open();
        const last = verifying(key);
        socket.end(Buffer.concat([verifying(key), verifying(limitedKey), last.subarray(0, last.length - cut)]));
        await closed;
        expect(statuses(responds())).toEqual(expected);
      },
    );

    // Node's TLS server aborts such a connection.
    test.each([
      { name: "and they are all direct ones", last: "" },
      // Node's TLS server aborts a connection with many unread responses.
      ...(of === "by TLS" ? [] : [{ name: "and its connection becomes Node's meanwhile", last: "Trailer: none\r\n" }]),
    ])(
      "client that reads slowly gets all responses of the direct front: $name",
      async ({ last }) => {
        let served: Socket | undefined;
        t.app.server.once(of === "by TLS" ? "secureConnection" : "connection", (one: Socket) => {
          served = one;
        });
        const { socket, responds } = open();
        socket.pause();
        const requests = Buffer.concat([...Array.from({ length: 499 }, () => verifying(key)), verifying(key, last)]);
        for (let round = 0; round < 60; round += 1) socket.write(requests);
        let readBefore = 0;
        await waitFor(
          "the server to stop reading",
          () => {
            const now = served?.bytesRead ?? 0;
            const isStill = now > 0 && now === readBefore && served?.isPaused() === true;
            readBefore = now;
            return isStill;
          },
          { deadlineMs: 60_000 },
        );
        socket.resume();
        await waitFor("all answers", () => responds().length === 30_000, { deadlineMs: 60_000, everyMs: 500 });
        socket.destroy();
      },
      120_000,
    );

    test("client disconnect before a direct front response has no further effect", async () => {
      for (let round = 0; round < 20; round += 1) {
        const { socket, closed } = open();
        socket.on("connect", () => {
          socket.write(Buffer.concat([verifying(limitedKey), verifying(limitedKey)]), () => {
            // A TLS socket cannot be reset.
            if (of === "by TLS") socket.destroy();
            else socket.resetAndDestroy();
          });
        });
        await closed;
      }
      expect(statuses(await exchange(1, verifying(limitedKey)))).toEqual([200]);
    });
  });

  describe("shutdown", () => {
    test("draining direct front closes each connection after its next response", async () => {
      const app = await buildTestApp(optionsOf());
      const drain = prepareDrain(app.app.server, app.app.direct);
      const to = await listen(app);
      const request = requestOf({ body: `{"key":"no"}`, rootKey: app.workspace.rootKey });
      const used = open(to);
      const silent = open(to);
      used.socket.write(request);
      await waitFor("the first answer", () => used.responds().length === 1);
      expect(used.responds()[0]?.headers.connection).toBe("keep-alive");
      const draining = drain();
      used.socket.write(request);
      await used.closed;
      expect(used.responds().map(({ headers }) => headers.connection)).toEqual(["keep-alive", "close"]);
      await draining;
      await app.close();
      await silent.closed;
    });
  });
});
