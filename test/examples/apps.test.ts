import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATUS_AT_A_GATE } from "../../core/verification/codes.ts";
import { type Server, startServer } from "../conformance/server.ts";
import { type FaultLine, type LineFault, openFaultLine } from "../harness/fault-line.ts";
import type { RunningProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import { APPS, type ExampleApp, startApp } from "./apps.ts";
import { type IssuedKey, type Issuer, issuerOf } from "./keys.ts";

/* The example apps, each a process of its own that asks a real api-server: they all answer as a gate of Postern does. */

/** What the apps say, and what a busy machine may take beside it. */
const DEADLINE_MS = 2000;
const SLACK_MS = 3000;
const START_MS = 300_000;

let server: Server;
let issue: Issuer;
let verifyOnly: string;
/** A key that has expired; to wait for it once is enough. */
let expired: Promise<IssuedKey>;
const running = new Map<ExampleApp, Running>();

/** An app, and a line on which Postern can be disturbed for this app alone. */
interface Running {
  readonly line: FaultLine;
  readonly url: string;
  readonly process: RunningProcess;
}
const runningOf = (example: ExampleApp): Running => {
  const found = running.get(example);
  if (found === undefined) throw new Error(`the app in ${example.name} does not run`);
  return found;
};

beforeAll(async () => {
  server = await startServer();
  const { rootKey, resources } = await server.workspace();
  issue = await issuerOf(server.url, rootKey);
  verifyOnly = await server.rootKey(resources.workspaceId, ["api.*.verify_key"]);
  expired = issue({ expires: 1 });
  await Promise.all(
    APPS.map(async (example) => {
      const line = await openFaultLine(server.url);
      const app = await startApp(example, { apiUrl: line.url.replace(/\/$/, ""), rootKey: verifyOnly });
      running.set(example, { line, ...app });
    }),
  );
}, START_MS);
afterAll(async () => {
  for (const { process, line } of running.values()) {
    await process.stop();
    await line.close();
  }
  await server?.close();
});

test("app example page lists three languages and four frameworks", () => {
  expect(APPS.length).toBe(8);
});

test.each(APPS)("app example in $name fails to start without a root key", async (example) => {
  const started = startApp(example, { apiUrl: server.url, rootKey: "" });
  await expect(started).rejects.toThrow("set POSTERN_ROOT_KEY to a root key that has api.*.verify_key");
});

interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { error?: string; for?: { keyId: string; externalId?: string | null; plan?: string | null } };
}

async function askAt({ url }: Running, authorization?: string): Promise<HttpResponse> {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const response = await fetch(`${url}/reports`, { headers, signal: AbortSignal.timeout(10_000) });
  return { status: response.status, headers: response.headers, body: (await response.json()) as HttpResponse["body"] };
}

describe.each(APPS)("the app in $name", (example) => {
  const ask = (authorization?: string) => askAt(runningOf(example), authorization);
  const askWith = (key: string) => ask(`Bearer ${key}`);

  test("app example serves a request with a valid key and identifies the owner", async () => {
    const { key, keyId } = await issue({ externalId: "customer_42", meta: { plan: "pro" } });
    const { status, body } = await askWith(key);
    expect([status, body.for]).toEqual([200, { keyId, externalId: "customer_42", plan: "pro" }]);
    expect((await ask(`bearer   ${key} `)).status, "the scheme in another case").toBe(200);
  });

  test("app example serves a request with a key that has no owner", async () => {
    const { key, keyId } = await issue({});
    const { status, body } = await askWith(key);
    expect([status, body.for?.keyId, body.for?.externalId ?? "", body.for?.plan ?? ""]).toEqual([200, keyId, "", ""]);
  });

  test.each([
    { name: "no header", authorization: undefined },
    { name: "another scheme", authorization: "Basic YWxpY2U6c2VjcmV0" },
    { name: "a scheme without a key", authorization: "Bearer" },
    { name: "two words", authorization: "Bearer acme_a acme_b" },
    { name: "a key that is longer than any", authorization: `Bearer ${"a".repeat(513)}` },
    { name: "a key that is not known", authorization: "Bearer acme_notAKeyOfOurs" },
    { name: "a key with signs of JSON", authorization: 'Bearer "},{"\\' },
    { name: "a key with a byte above ASCII", authorization: "Bearer acme_\u00e9\u00ff" },
  ])("app example responds 401 to a request with $name", async ({ authorization }) => {
    const { status, headers, body } = await ask(authorization);
    expect([status, headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect(body.error).toMatch(/API key/);
  });

  test.each([
    { code: "DISABLED", key: { enabled: false } },
    { code: "EXPIRED", key: "expired" },
    { code: "INSUFFICIENT_PERMISSIONS", key: { permissions: [] } },
    { code: "USAGE_EXCEEDED", key: { credits: { remaining: 0 } } },
  ] as const)("app example rejects a key with the code $code as a gate does", async ({ code, key: body }) => {
    const { key } = await (body === "expired" ? expired : issue(body));
    const response = await askWith(key);
    expect(response.status).toBe(STATUS_AT_A_GATE[code]);
    expect(response.headers.get("www-authenticate")).toBe(response.status === 401 ? "Bearer" : null);
    expect(response.body).toEqual({ error: expect.any(String) });
  });

  test("app example admits ten requests per minute and sends Retry-After", async () => {
    const { key } = await issue({});
    const responses: HttpResponse[] = [];
    // A window may end meanwhile, then some more pass.
    while (responses.at(-1)?.status !== 429 && responses.length < 30) responses.push(await askWith(key));
    expect(responses.length).toBeGreaterThan(10);
    expect(responses.slice(0, -1).every(({ status }) => status === 200)).toBe(true);
    const seconds = Number(responses.at(-1)?.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect((await issue({}).then((other) => askWith(other.key))).status, "each key has a limit of its own").toBe(200);
  });
});

const FAULTS: readonly { name: string; fault: LineFault }[] = [
  { name: "resets connections", fault: { kind: "reset" } },
  { name: "speaks no JSON", fault: { kind: "garbage" } },
  { name: "sends 500", fault: { kind: "empty", response: "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}" } },
  {
    name: "sends 200 without a verification",
    fault: { kind: "empty", response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" },
  },
  { name: "does not answer", fault: { kind: "halfOpen" } },
  { name: "is slow at each step", fault: { kind: "latency", ms: 1500 } },
  {
    name: "begins an answer and does not end it",
    fault: { kind: "empty", response: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{" },
  },
];

// All apps at the same time, because they wait for their deadline.
test.each(FAULTS)("app examples respond 503 in time when Postern $name, and recover", async ({ fault }) => {
  const checks = APPS.map(async (example) => {
    const app = runningOf(example);
    const { key } = await issue({});
    app.line.disturb(fault);
    const askedAt = performance.now();
    const { status, headers, body } = await askAt(app, `Bearer ${key}`);
    expect(performance.now() - askedAt, example.name).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expect([status, headers.get("retry-after")], example.name).toEqual([503, "1"]);
    expect(JSON.stringify(body)).not.toContain(key);
    app.line.disturb(undefined);
    const serves = async () => (await askAt(app, `Bearer ${key}`)).status === 200;
    await waitFor(`the app in ${example.name} to serve again`, serves);
  });
  await Promise.all(checks);
});

test("app examples respond 503 when Postern is unreachable and log no secret", async () => {
  const { key } = await issue({});
  for (const example of APPS) {
    const app = runningOf(example);
    await app.line.close();
    expect((await askAt(app, `Bearer ${key}`)).status, example.name).toBe(503);
    const output = `${app.process.stdout()}${app.process.stderr()}`;
    expect(output, example.name).toContain("verification failed");
    for (const secret of [key, verifyOnly]) expect(output, example.name).not.toContain(secret);
  }
});

test("app example with an unpermitted root key responds 503 and logs the reason", async () => {
  const { key } = await issue({});
  const none = await server.rootKey("ws_1", ["api.*.read_api"]);
  await Promise.all(
    APPS.map(async (example) => {
      const app = await startApp(example, { apiUrl: server.url, rootKey: none });
      const response = await fetch(`${app.url}/reports`, { headers: { authorization: `Bearer ${key}` } });
      expect(response.status, example.name).toBe(503);
      expect(app.process.stderr(), example.name).toMatch(/403|permission/i);
      await app.process.stop();
    }),
  );
});
