import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterEach, describe, expect, test } from "vitest";
import type { CompiledPolicy, PolicyRule } from "../core/policies/policy.ts";
import { extAuthOf } from "../test/harness/ext-auth.ts";
import { aRule, openGate, sendRaw, type TestGate, waitFor } from "../test/harness/gate.ts";
import { HEADERS, RawHttp2Client, RST_STREAM } from "../test/harness/http2-client.ts";
import {
  CheckRequestSchema,
  CheckResponseSchema,
} from "./ext-auth/generated/envoy/service/auth/v3/external_auth_pb.js";

/*
 * Requests that are spelled so that gate and app might disagree on which rule applies, sent by every way on which a gate receives requests.
 * A rule shows that it applied by its limit, which is in the response.
 */

let gate: TestGate;
let session: ClientHttp2Session | undefined;
const clients: RawHttp2Client[] = [];
afterEach(async () => {
  session?.destroy();
  session = undefined;
  for (const { socket } of clients.splice(0)) socket.destroy();
  await gate.close();
});

const FIRST_LIMIT = 1001;

/** Returns an anonymous rule whose limit names it in the responses. */
const shown = (at: number, rule: Partial<PolicyRule> = {}): PolicyRule =>
  aRule({
    access: "Anonymous",
    ratelimits: [
      {
        scope: { kind: "name", name: "shown" },
        by: ["method"],
        limit: FIRST_LIMIT + at,
        durationMs: 86_400_000,
        cost: 1,
        accuracy: "strict",
      },
    ],
    ...rule,
  });

/** Opens a gate with these rules, in their order, that is reached by every way. */
async function open(rules: Record<string, Partial<PolicyRule>>, policy: Partial<CompiledPolicy> = {}) {
  const made = Object.values(rules).map((rule, at) => shown(at, rule));
  const all = { formatVersion: 2, ...policy, rules: made };
  gate = await openGate({ policy: all, config: { extAuth: extAuthOf(["authorize", "grpc"]) } });
  const nameOf = (limit: string | undefined): string => Object.keys(rules)[Number(limit) - FIRST_LIMIT] ?? "";
  return async (way: Way, request: Request): Promise<string> => {
    const { status, limit } = await WAYS[way]({ method: "GET", target: "/", host: "a.test", headers: [], ...request });
    return `${status} ${nameOf(limit)}`.trim();
  };
}

interface Request {
  readonly method?: string;
  readonly target?: string;
  /** `undefined` for no Host. */
  readonly host?: string | undefined;
  readonly headers?: readonly (readonly [name: string, value: string])[];
}
type Sent = { readonly host: string | undefined } & Required<Omit<Request, "host">>;
/** What came back. `limit` is the limit of the rule that applied. */
interface Outcome {
  readonly status: number;
  readonly limit: string | undefined;
}

const portOf = (url: string | undefined): number => Number(new URL(url ?? "").port);

async function sendHttp1(port: number, line: string, lines: readonly string[]): Promise<Outcome> {
  const { status, text } = await sendRaw(port, [line, "Connection: close", ...lines].join("\r\n"), "\r\n\r\n");
  return { status, limit: /^ratelimit-limit: (\d+)/im.exec(text)?.[1] };
}

const linesOf = ({ host, headers }: Sent): string[] => [
  ...(host === undefined ? [] : [`Host: ${host}`]),
  ...headers.map(([name, value]) => `${name}: ${value}`),
];

async function sendHttp2({ method, target, host, headers }: Sent): Promise<Outcome> {
  session ??= connect(`http://127.0.0.1:${gate.port}`).on("error", () => undefined);
  const named: Record<string, string | string[]> = { ":method": method, ":path": target };
  if (host !== undefined) named[":authority"] = host;
  for (const [name, value] of headers) {
    const before = named[name.toLowerCase()];
    named[name.toLowerCase()] = before === undefined ? value : [before, value].flat();
  }
  const stream = session.request(named);
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  // Node resets a stream with malformed pseudo-headers, as RFC 9113, 8.1.1, allows.
  stream.on("error", (error: Error) =>
    error.message.includes("NGHTTP2_PROTOCOL_ERROR") ? resolve({ status: 400, limit: undefined }) : reject(error),
  );
  stream.on("response", (response: IncomingHttpHeaders & { ":status"?: number }) => {
    stream.close();
    resolve({ status: response[":status"] ?? 0, limit: response["ratelimit-limit"] as string | undefined });
  });
  return promise;
}

/** Sends Envoy's gRPC check. `raw` headers are those of `encode_raw_headers`; otherwise Envoy joins duplicates. */
async function checkByGrpc({ method, target, host = "", headers }: Sent, address = "127.0.0.1"): Promise<Outcome> {
  const grpc = connect(`http://127.0.0.1:${portOf(gate.sidecar.grpcUrl)}`);
  const stream = grpc.request({
    ":method": "POST",
    ":path": "/envoy.service.auth.v3.Authorization/Check",
    "content-type": "application/grpc",
    te: "trailers",
  });
  const raw = headers.map(([key, value]) => ({ key: key.toLowerCase(), rawValue: Buffer.from(value, "latin1") }));
  const message = toBinary(
    CheckRequestSchema,
    create(CheckRequestSchema, {
      attributes: {
        source: { address: { address: { case: "socketAddress", value: { address } } } },
        request: { http: { method, path: target, host, headerMap: { headers: raw } } },
      },
    }),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([head, message]));
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  grpc.close();
  const { httpResponse } = fromBinary(CheckResponseSchema, Buffer.concat(chunks).subarray(5));
  if (httpResponse.case === undefined || httpResponse.case === "errorResponse") throw new Error("no response");
  const isOk = httpResponse.case === "okResponse";
  const shownHeaders = isOk ? httpResponse.value.responseHeadersToAdd : httpResponse.value.headers;
  return {
    status: isOk ? 200 : (httpResponse.value.status?.code ?? 0),
    limit: shownHeaders.find(({ header }) => header?.key === "RateLimit-Limit")?.header?.value,
  };
}

const extAuthPort = (): number => portOf(gate.sidecar.authorizeUrl);

/** Sends requests as gateways and clients do. */
const WAYS = {
  "HTTP/1.1": (sent: Sent) => sendHttp1(gate.port, `${sent.method} ${sent.target} HTTP/1.1`, linesOf(sent)),
  "HTTP/2": sendHttp2,
  "X-Original-URI": (sent: Sent) =>
    sendHttp1(extAuthPort(), "GET /authorize HTTP/1.1", [
      ...linesOf(sent),
      `X-Original-Method: ${sent.method}`,
      `X-Original-URI: ${sent.target}`,
    ]),
  // Traefik calls the endpoint by its own name.
  "X-Forwarded-Uri": ({ host, ...sent }: Sent) =>
    sendHttp1(extAuthPort(), "GET /authorize HTTP/1.1", [
      ...linesOf({ ...sent, host: "gate.test" }),
      `X-Forwarded-Method: ${sent.method}`,
      `X-Forwarded-Uri: ${sent.target}`,
      ...(host === undefined ? [] : [`X-Forwarded-Host: ${host}`]),
    ]),
  "Envoy over HTTP": (sent: Sent) =>
    sendHttp1(extAuthPort(), `${sent.method} /authorize${sent.target} HTTP/1.1`, linesOf(sent)),
  "Envoy over gRPC": (sent: Sent) => checkByGrpc(sent),
} satisfies Record<string, (sent: Sent) => Promise<Outcome>>;
type Way = keyof typeof WAYS;
const EVERY_WAY = Object.keys(WAYS) as Way[];

describe("templates", () => {
  const RULES = {
    refund: { path: { template: "/orders/{order}/refund" } },
    files: { path: { template: "/files/{path...}" } },
    internal: { path: { template: "/{tenant}/internal" }, access: "Deny", ratelimits: [] },
    rest: {},
  } satisfies Record<string, Partial<PolicyRule>>;

  const TARGETS: Record<string, string> = {
    "/orders/7/refund": "200 refund",
    "/orders/%37/%72efund?a=/x": "200 refund",
    "/orders/A.b/refund": "200 refund",
    "/orders/7/refunds": "200 rest",
    "/orders/7": "200 rest",
    "/orders/7/8/refund": "200 rest",
    "/files/a/b": "200 files",
    "/files/": "200 files",
    "/acme/internal": "403",
    // Encoded slashes.
    "/orders/7%2Frefund": "400",
    "/orders/7%2frefund": "400",
    "/orders/7%252Frefund": "400",
    "/acme%5cinternal": "400",
    // Dot segments.
    "/orders/./7/refund": "400",
    "/orders/x/../7/refund": "400",
    "/orders/%2e%2e/refund": "400",
    "/x/%2E/internal": "400",
    "/acme/internal/.": "400",
    "/acme/internal/..%2f": "400",
    // Empty segments.
    "/orders//refund": "400",
    "/orders/7//refund": "400",
    "//acme/internal": "400",
    "/acme/internal/": "400",
    // Path parameters.
    "/orders/7;v=1/refund": "400",
    "/orders/7/refund;v=1": "400",
    "/acme/internal%3bx": "400",
    // Letter case, suffixes and compatibility characters.
    "/orders/7/REFUND": "400",
    "/Orders/7/refund": "400",
    "/acme/Internal": "400",
    "/acme/internal.json": "400",
    "/acme/%EF%BD%89nternal": "400",
    "/acme/internal%20": "400",
    // Bytes that are not UTF-8.
    "/orders/7%c0%afrefund": "400",
    "/acme%e0%80%afinternal": "400",
    "/acme/%f0%80%81%a9nternal": "400",
    "/acme/internal%ff": "400",
    "/acme/internal%00": "400",
  };

  test.each(EVERY_WAY)("a template cannot be evaded by the spelling of a path: %s", async (way) => {
    const ask = await open(RULES);
    const outcomes: Record<string, string> = {};
    for (const target of Object.keys(TARGETS)) outcomes[target] = await ask(way, { target });
    expect(outcomes).toEqual(TARGETS);
  });

  test.each(EVERY_WAY)("a policy that allows unusual paths still protects its templates: %s", async (way) => {
    const ask = await open(RULES, { allowPaths: ["EncodedSlash", "DoubleSlash", "Semicolon", "DotSegments"] });
    const outcomes: Record<string, string> = {};
    const expected: Record<string, string> = {
      "/orders/7;v=1/refund": "200 refund",
      "/orders/a%2Fb/refunds": "200 rest",
      "/orders/7%2Frefund": "400",
      "/orders/7/refund;v=1": "400",
      "/orders//7/refund": "400",
      "/acme//internal": "400",
      "/acme/x/../internal": "400",
      "/acme%2Finternal": "400",
      "/acme/internal;x": "400",
    };
    for (const target of Object.keys(expected)) outcomes[target] = await ask(way, { target });
    expect(outcomes).toEqual(expected);
  });

  test.each(EVERY_WAY)("all spellings of a path parameter share one counter: %s", async (way) => {
    const once = shown(0).ratelimits.map((limit) => ({ ...limit, by: ["path.order"], limit: 1 }));
    const ask = await open(
      { order: { path: { template: "/orders/{order}" }, ratelimits: once } },
      { allowPaths: ["Semicolon"] },
    );
    const statuses: string[] = [];
    for (const order of ["7", "%37", "7;a=b", "7?x", "8", "7a"]) {
      statuses.push(await ask(way, { target: `/orders/${order}` }));
    }
    expect(statuses).toEqual(["200", "429", "429", "429", "200", "200"]);
  });
});

describe("headers", () => {
  const RULES = {
    v2: { headers: [{ name: "X-Api-Version", exact: "2" }] },
    beta: { headers: [{ name: "X-Beta" }] },
    under: { headers: [{ name: "X_Old" }] },
    rest: {},
  };
  type Case = { readonly headers: Sent["headers"]; readonly outcome: string; readonly not?: readonly Way[] };
  const CASES: Record<string, Case> = {
    "the value": { headers: [["X-Api-Version", "2"]], outcome: "200 v2" },
    "another case of the name": { headers: [["x-aPI-version", "2"]], outcome: "200 v2" },
    "another value": { headers: [["X-Api-Version", "02"]], outcome: "200 rest" },
    "a list of values": { headers: [["X-Api-Version", "2, 2"]], outcome: "200 rest" },
    "the empty value": { headers: [["X-Api-Version", ""]], outcome: "200 rest" },
    "the value and a no-break space": { headers: [["X-Api-Version", "2\xa0"]], outcome: "200 rest" },
    "a full-width digit": { headers: [["X-Api-Version", "\xef\xbc\x92"]], outcome: "200 rest" },
    "bytes beyond ASCII": { headers: [["X-Beta", "\xff\x80"]], outcome: "200 beta" },
    "a present header without a value": { headers: [["X-Beta", ""]], outcome: "200 beta" },
    "the value twice": {
      headers: [
        ["X-Api-Version", "2"],
        ["x-api-version", "2"],
      ],
      outcome: "400",
    },
    "two values": {
      headers: [
        ["X-Api-Version", "1"],
        ["X-Api-Version", "2"],
      ],
      outcome: "400",
    },
    "an underscore": { headers: [["X_Api_Version", "2"]], outcome: "400" },
    "an underscore beside the header": {
      headers: [
        ["X-Beta", "1"],
        ["X_Beta", "1"],
      ],
      outcome: "400",
    },
    "a hyphen for an underscore": { headers: [["X-Old", "1"]], outcome: "400" },
    "a dot, which CGI servers replace too": { headers: [["X.Beta", "1"]], outcome: "400" },
    // gRPC checks lack Connection, because Envoy has removed the headers that it names. HTTP/2 has no such header.
    "a header that Connection removes": {
      headers: [
        ["Connection", "X-Beta"],
        ["X-Beta", "1"],
      ],
      outcome: "400",
      not: ["HTTP/2", "Envoy over gRPC"],
    },
  };

  test.each(EVERY_WAY)("a header that could be read in two ways is rejected or has no effect: %s", async (way) => {
    const ask = await open(RULES);
    const outcomes: Record<string, string> = {};
    const expected: Record<string, string> = {};
    for (const [name, { headers, outcome, not }] of Object.entries(CASES)) {
      if (not?.includes(way)) continue;
      expected[name] = outcome;
      outcomes[name] = await ask(way, { headers });
    }
    expect(outcomes).toEqual(expected);
  });

  test("HTTP/1.1 white space around a header value and folded lines do not change which rule applies", async () => {
    const ask = await open(RULES);
    expect(await ask("HTTP/1.1", { headers: [["X-Api-Version", "\t 2 \t"]] })).toBe("200 v2");
    expect(await ask("HTTP/1.1", { headers: [["X-Api-Version", "1\r\n 2"]] })).toBe("400");
    expect(await ask("HTTP/1.1", { headers: [["X-Api-Version ", "2"]] })).toBe("400");
  });
});

describe("hosts", () => {
  const RULES = {
    api: { hosts: ["api.example.com"] },
    eu: { hosts: ["*.eu.example.com"] },
    internal: { hosts: ["internal.example.com"], access: "Deny", ratelimits: [] },
    rest: {},
  } satisfies Record<string, Partial<PolicyRule>>;

  const HOSTS: Record<string, string> = {
    "api.example.com": "200 api",
    "API.Example.COM": "200 api",
    "api.example.com:8443": "200 api",
    "api.example.com:": "200 api",
    "api.example.com.": "200 api",
    "api.example.com.:80": "200 api",
    "api.example.com..": "200 rest",
    "api.example.com.evil.test": "200 rest",
    "a.eu.example.com": "200 eu",
    "a.b.EU.example.com.": "200 eu",
    "eu.example.com": "200 rest",
    "internal.example.com": "403",
    "INTERNAL.example.com.:1": "403",
    "[::1]:80": "200 rest",
    "api.example.com@internal.example.com": "400",
    "internal.example.com:80:80": "400",
    "internal.example.com:80a": "400",
    "internal.example.com/": "400",
    "internal.example.com api.example.com": "400",
    "internal.example.com\xa0": "400",
    "int%65rnal.example.com": "400",
    "internal%2Eexample.com": "400",
    "%EF%BD%89nternal.example.com": "400",
    "internal.example.com%00": "400",
    "internal.example.com%": "400",
  };

  test.each(EVERY_WAY)("a host rule matches every spelling of its host and no other host: %s", async (way) => {
    const ask = await open(RULES);
    const outcomes: Record<string, string> = {};
    for (const host of Object.keys(HOSTS)) outcomes[host] = await ask(way, { host });
    expect(outcomes).toEqual(HOSTS);
  });

  const ABSOLUTE_WAYS = EVERY_WAY.filter((way) => way !== "Envoy over HTTP" && way !== "HTTP/2");
  test.each(ABSOLUTE_WAYS)("a target in absolute form must name the host of the request: %s", async (way) => {
    const ask = await open(RULES);
    const host = "api.example.com";
    expect(await ask(way, { target: "http://api.example.com/x", host })).toBe("200 api");
    expect(await ask(way, { target: "http://API.example.com?x", host })).toBe("200 api");
    expect(await ask(way, { target: "http://internal.example.com/x", host })).toBe("400");
    expect(await ask(way, { target: "http://api.example.com/x", host: "internal.example.com" })).toBe("400");
    expect(await ask(way, { target: "http://api.example.com@internal.example.com/x", host })).toBe("400");
    expect(await ask(way, { target: "//internal.example.com/x", host })).toBe("400");
  });

  test("`:authority` and `host` of an HTTP/2 request must agree if both are present", async () => {
    const ask = await open(RULES);
    expect(await ask("HTTP/2", { host: "api.example.com", headers: [["host", "api.example.com"]] })).toBe("200 api");
    expect(await ask("HTTP/2", { host: "api.example.com", headers: [["host", "internal.example.com"]] })).toBe("400");
    expect(await ask("HTTP/2", { host: "internal.example.com", headers: [["host", "api.example.com"]] })).toBe("400");
    expect(await ask("HTTP/2", { target: "http://internal.example.com/", host: "api.example.com" })).toBe("400");
  });

  test("HTTP/2 request without `:authority` is matched by `host`, and one with two hosts never reaches the app", async () => {
    await open(RULES);
    const client = await new RawHttp2Client(gate.port).open();
    clients.push(client);
    const fields = (...hosts: [string, string][]): [string, string][] => [
      [":method", "GET"],
      [":path", "/"],
      [":scheme", "http"],
      ...hosts,
    ];
    client.ask(1, fields(["host", "internal.example.com"]));
    await waitFor("the rejection", () => client.has(HEADERS, 1));
    expect(gate.app.seen).toEqual([]);
    expect(await gate.metrics()).toContain('requests_total{code="DENIED"} 1');
    client.ask(3, fields([":authority", "api.example.com"], [":authority", "internal.example.com"]));
    await waitFor("the reset", () => client.has(RST_STREAM, 3));
    client.ask(5, fields(["host", "api.example.com"], ["host", "internal.example.com"]));
    await waitFor("the rejection", () => client.has(HEADERS, 5) || client.has(RST_STREAM, 5));
    client.ask(7, fields(["host", "api.example.com"]));
    await waitFor("the response", () => gate.app.seen.length > 0);
    expect(gate.app.seen.map(({ headers }) => headers.host)).toEqual(["api.example.com"]);
  });

  test("HTTP/1.0 request without Host matches only rules for every host, and HTTP/1.1 requires Host", async () => {
    const ask = await open(RULES);
    expect(await ask("HTTP/1.1", { host: undefined })).toBe("400");
    const old = async (target: string, lines: readonly string[]) => {
      const { status, limit } = await sendHttp1(gate.port, `GET ${target} HTTP/1.0`, lines);
      return [status, Number(limit) - FIRST_LIMIT];
    };
    expect(await old("/", [])).toEqual([200, 3]);
    expect(await old("/", ["Host: api.example.com"])).toEqual([200, 0]);
    // The app gets the path without this host.
    expect(await old("http://api.example.com/", [])).toEqual([200, 3]);
    expect(gate.app.seen.at(-1)).toMatchObject({ url: "/", headers: { host: new URL(gate.app.url).host } });
    expect(await old("/", ["Host: api.example.com", "Host: internal.example.com"])).toEqual([400, Number.NaN]);
  });

  test("X-Forwarded-Host defines the host only for gateways that use X-Forwarded-Uri", async () => {
    const ask = await open(RULES);
    const forged: Sent["headers"] = [["X-Forwarded-Host", "api.example.com"]];
    for (const way of EVERY_WAY.filter((one) => one !== "X-Forwarded-Uri")) {
      expect(await ask(way, { host: "internal.example.com", headers: forged }), way).toBe("403");
    }
    expect(await ask("X-Forwarded-Uri", { host: "internal.example.com", headers: forged })).toBe("400");
    expect(await ask("X-Forwarded-Uri", { host: undefined })).toBe("200 rest");
  });
});

describe("client addresses", () => {
  const TRUSTED: CompiledPolicy["clientAddress"] = {
    from: "forwardedFor",
    trustedProxies: ["127.0.0.1", "10.0.0.0/8"],
  };
  /** Returns the request as it comes from a proxy at 127.0.0.1 that has received this X-Forwarded-For. */
  const behind = (way: Way, forwardedFor: readonly string[]): Request => {
    const headers = forwardedFor.map((one) => ["X-Forwarded-For", one] as const);
    if (way === "X-Original-URI" || way === "X-Forwarded-Uri") {
      return { headers: [...headers, ["X-Forwarded-For", "127.0.0.1"]] };
    }
    if (way !== "Envoy over HTTP") return { headers };
    return {
      headers: [["X-Real-IP", "127.0.0.1"], ...headers, ["X-Forwarded-For", "10.9.9.9"]],
    };
  };

  test.each(EVERY_WAY)("forged X-Forwarded-For does not evade a rate limit: %s", async (way) => {
    const once = shown(0).ratelimits.map((limit) => ({ ...limit, by: ["address"], limit: 1 }));
    const ask = await open({ guests: { ratelimits: once } }, { clientAddress: TRUSTED });
    const steps: [forwardedFor: string[], status: string][] = [
      [["203.0.113.1"], "200"],
      [["203.0.113.1"], "429"],
      // Entries before the last untrusted one.
      [["198.51.100.1, 203.0.113.1"], "429"],
      [["198.51.100.1", "203.0.113.1"], "429"],
      [["198.51.100.1, 203.0.113.1, 10.1.1.1"], "429"],
      // Spellings of one address.
      [["203.0.113.1:4711"], "429"],
      [["::ffff:203.0.113.1"], "429"],
      [["::FFFF:cb00:7101"], "429"],
      // Networks of IPv6 addresses.
      [["2001:db8::1"], "200"],
      [["[2001:DB8:0:0:ffff::2]:443"], "429"],
      [["2001:db8:0:1::1"], "200"],
      // All entries that are no address count as one.
      [["bogus-1"], "200"],
      [["bogus-2"], "429"],
      [["203.0.113.300"], "429"],
      [["0313.0.113.1"], "429"],
      [["203.0.113.1, bogus-3"], "429"],
      [["203.0.113.1\xa0"], "429"],
      [["unknown"], "429"],
    ];
    const outcomes: typeof steps = [];
    for (const [forwardedFor] of steps) outcomes.push([forwardedFor, await ask(way, behind(way, forwardedFor))]);
    expect(outcomes).toEqual(steps);
  });

  test.each(EVERY_WAY)("failed attempts count per client address, and good keys keep working: %s", async (way) => {
    const ask = await open(
      { all: { access: "Key", ratelimits: [] } },
      { clientAddress: TRUSTED, failedAttempts: { limit: 2, durationMs: 60_000 } },
    );
    const good = await gate.records.putKey();
    const attempt = (key: string, forwardedFor: string) => {
      const { headers = [] } = behind(way, [forwardedFor]);
      return ask(way, { headers: [...headers, ["Authorization", `Bearer ${key}`]] });
    };
    expect(await attempt(good, "203.0.113.1")).toBe("200");
    const statuses: string[] = [];
    for (let guess = 0; guess < 4; guess++) statuses.push(await attempt(`guess_${guess}`, `${guess}, 203.0.113.1`));
    expect(statuses).toEqual(["401", "401", "429", "429"]);
    expect(await attempt(good, "203.0.113.1")).toBe("200");
    expect(await attempt("guess_5", "203.0.113.2")).toBe("401");
  });

  test("requests whose gateway reports no client address share one counter", async () => {
    const once = shown(0).ratelimits.map((limit) => ({ ...limit, by: ["address"], limit: 1 }));
    const ask = await open({ guests: { ratelimits: once } }, { clientAddress: TRUSTED });
    expect(await ask("X-Original-URI", {})).toBe("200");
    expect(await ask("X-Forwarded-Uri", { headers: [["X-Forwarded-For", "unix:"]] })).toBe("429");
    expect(await ask("Envoy over HTTP", {})).toBe("429");
    const sent = { method: "GET", target: "/", host: "a.test", headers: [] };
    expect((await checkByGrpc(sent, "")).status).toBe(429);
    expect((await checkByGrpc(sent, "pipe")).status).toBe(429);
  });
});
