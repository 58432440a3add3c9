import { once } from "node:events";
import { Agent, request } from "node:https";
import { connect as connectSocket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import fc from "fast-check";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { aConfig, aPod } from "../test/pods.ts";
import { renewed } from "./certificate-set.ts";
import { mutatePod } from "./mutate.ts";
import { startWebhookServer, type WebhookServer } from "./server.ts";
import { validatePolicy } from "./validate.ts";

const desired = { hosts: ["127.0.0.1"], lifetimes: { authorityMs: 3.6e6, servingMs: 3.6e6 }, nowMs: Date.now() };
let set = renewed(undefined, desired);
let server: WebhookServer;
let isReady = true;
const seen: boolean[] = [];

beforeAll(async () => {
  server = await startWebhookServer(
    {
      host: "127.0.0.1",
      port: 0,
      handlers: {
        "/mutate": (review) =>
          mutatePod(review, {
            config: aConfig(),
            controllerClass: undefined,
            cluster: "main",
            policiesOf: () => [],
            workspaceOf: async () => ({ workspaceId: "ws_1" }),
          }),
        "/validate": validatePolicy,
        "/broken": () => {
          throw new Error("on purpose");
        },
        "/never": () => new Promise(() => undefined),
      },
      isReady: () => isReady,
      observe: ({ allowed }) => void seen.push(allowed),
      log: pino({ level: "silent" }),
    },
    set,
  );
});
afterAll(() => server.close());

interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Posts a body; a connection error has status 0. */
async function post(path: string, body: string | Buffer, { method = "POST" } = {}): Promise<Reply> {
  const call = request({ port: server.port, host: "127.0.0.1", path, method, ca: set.bundle, agent: false });
  call.end(body);
  try {
    const [response] = await once(call, "response");
    return { status: response.statusCode, body: await text(response) };
  } catch {
    return { status: 0, body: "" };
  }
}

const review = (object: unknown, more: object = {}) =>
  JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "u-1",
      kind: { group: "", version: "v1", kind: "Pod" },
      namespace: "shop",
      operation: "CREATE",
      object,
      ...more,
    },
  });

test("webhook response repeats the review uid and explains a rejection", async () => {
  const { status, body } = await post("/mutate", review(aPod()));
  expect(status).toBe(200);
  expect(JSON.parse(body)).toMatchObject({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: {
      uid: "u-1",
      allowed: false,
      status: { code: 403, message: expect.stringContaining("no ApiKeyPolicy") },
    },
  });
  const named = aPod({ metadata: { annotations: { "postern.dev/policy": "coming" } } });
  const { response } = JSON.parse((await post("/mutate", review(named))).body);
  expect(response).toMatchObject({ allowed: true, patchType: "JSONPatch" });
  expect(Buffer.from(response.patch, "base64").toString()).toContain("postern-gate");
  expect(seen.slice(-2)).toEqual([false, true]);
});

test.each([
  { name: "another path", path: "/", status: 404 },
  { name: "a path of every object's prototype", path: "/constructor", status: 404 },
  { name: "another method", method: "PUT", status: 405 },
  { name: "nothing", body: "", status: 400 },
  { name: "no JSON", body: "{", status: 400 },
  {
    name: "another version of the review",
    body: review({}).replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1"),
    status: 400,
  },
  {
    name: "a review without a request",
    body: '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    status: 400,
  },
  { name: "nine mebibytes", body: "x".repeat(9 * 1024 * 1024), status: 413 },
])(
  "webhook responds to $name with $status and keeps serving",
  async ({ path = "/mutate", method, body = review(aPod()), status }) => {
    const reply = await post(path, body, method === undefined ? {} : { method });
    // A client that is still sending may lose the connection before it reads the response.
    expect(status === 413 ? [413, 0] : [status]).toContain(reply.status);
    expect((await post("/mutate", review(aPod()))).status).toBe(200);
  },
);

test("webhook survives objects of any shape and admits or rejects them", async () => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.record({ metadata: fc.jsonValue(), spec: fc.jsonValue() }),
    fc.jsonValue().map((value) => ({ ...aPod(), spec: { containers: [value] } })),
    fc.jsonValue().map((value) => aPod({ app: { ports: value, readinessProbe: value, lifecycle: value } })),
  );
  await fc.assert(
    fc.asyncProperty(odd, fc.constantFrom("/mutate", "/validate"), async (object, path) => {
      const kind = { group: "", version: "v1", kind: path === "/mutate" ? "Pod" : "ApiKeyPolicy" };
      const { status, body } = await post(path, review(object, { kind }));
      expect(status).toBe(200);
      expect(typeof JSON.parse(body).response.allowed).toBe("boolean");
    }),
    { numRuns: 100 },
  );
});

test("webhook rejects an object when its decision throws, and reveals no details", async () => {
  const { body } = await post("/broken", review({}));
  expect(JSON.parse(body).response).toMatchObject({ allowed: false });
  expect(body).not.toContain("on purpose");
});

test("webhook rejects an object before the API server times out", async () => {
  const started = performance.now();
  const { body } = await post("/never", review({}));
  expect(JSON.parse(body).response).toMatchObject({ allowed: false });
  expect(performance.now() - started).toBeLessThan(5_000);
});

test("webhook makes no decision about a pod before manifests are loaded", async () => {
  isReady = false;
  expect((await post("/mutate", review(aPod()))).status).toBe(503);
  isReady = true;
});

test("webhook keep-alive timeout exceeds that of Kubernetes API servers", async () => {
  const agent = new Agent({ keepAlive: true });
  const call = request({ port: server.port, host: "127.0.0.1", path: "/", method: "POST", ca: set.bundle, agent });
  call.end();
  const [response] = await once(call, "response");
  response.resume();
  const [, seconds = "0"] = /timeout=(\d+)/.exec(response.headers["keep-alive"]) ?? [];
  expect(Number(seconds)).toBeGreaterThan(90);
  agent.destroy();
});

test("webhook serves a renewed certificate to new connections without closing open ones", async () => {
  const open = connect({ port: server.port, host: "127.0.0.1", ca: set.bundle });
  await once(open, "secureConnect");
  const next = renewed(undefined, desired);
  server.setCertificate(next);
  expect((await post("/mutate", review(aPod()))).status).toBe(0);
  set = next;
  expect((await post("/mutate", review(aPod()))).status).toBe(200);
  open.write(`POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`);
  const [response] = await once(open, "data");
  expect(String(response)).toMatch(/^HTTP\/1\.1 400/);
  open.destroy();
});

test("webhook that is being closed still responds on an open connection, and then closes the connection", async () => {
  const options = { host: "127.0.0.1", port: 0, handlers: { "/validate": validatePolicy }, isReady: () => true };
  const own = await startWebhookServer({ ...options, observe: () => undefined, log: pino({ level: "silent" }) }, set);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async () => {
    const call = request({
      port: own.port,
      host: "127.0.0.1",
      path: "/validate",
      method: "POST",
      ca: set.bundle,
      agent,
    });
    call.end(review({}, { kind: { group: "", version: "v1", kind: "ApiKeyPolicy" } }));
    const [response] = await once(call, "response");
    await text(response);
    return { status: response.statusCode, connection: response.headers.connection, isReused: call.reusedSocket };
  };
  expect(await ask()).toMatchObject({ status: 200, connection: "keep-alive" });
  const closed = own.close();
  await sleep(200);
  expect(await ask()).toEqual({ status: 200, connection: "close", isReused: true });
  await closed;
  await expect(ask()).rejects.toThrow("ECONNREFUSED");
  agent.destroy();
});

test("webhook closes stalled TLS handshakes within the call timeout", async () => {
  const silent = connectSocket({ port: server.port, host: "127.0.0.1" }).on("error", () => undefined);
  silent.resume();
  const startedMs = performance.now();
  await new Promise((done) => silent.once("close", done));
  expect(performance.now() - startedMs).toBeLessThan(12_000);
}, 15_000);
