import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../test/harness/wait.ts";
import { keepCredentials } from "./credentials.ts";

const USER = { username: "u1", password: "p1", validMs: 3_600_000 };

/** Opens an api-server that responds with `respond`, and credentials from it. */
async function open(respond: (count: number, res: ServerResponse) => void) {
  const dir = mkdtempSync(join(tmpdir(), "postern-credentials-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const tokenFile = join(dir, "token");
  writeFileSync(tokenFile, "token-1\n");
  const seen: { url: string | undefined; token: string | undefined; body: string }[] = [];
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    seen.push({ url: req.url, token: req.headers.authorization, body });
    respond(seen.length, res);
  };
  const server = createServer((req, res) => void serve(req, res));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const lines: string[] = [];
  const note = (about: { reason?: string }, message: string) => void lines.push(`${message} ${about.reason ?? ""}`);
  const credentials = keepCredentials({
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: undefined,
    tokenFile,
    asked: { workspaceId: "ws_1", cluster: "east", policy: "orders" },
    logger: { info: note, warn: note } as never,
  });
  onTestFinished(() => credentials.close());
  return { credentials, seen, lines, tokenFile };
}

const answerUser = (res: ServerResponse, user: object = USER) => res.end(JSON.stringify(user));

test("gate exchanges its service account token for Redis credentials", async () => {
  const { credentials, seen } = await open((_count, res) => answerUser(res));
  expect(credentials.current).toBe(undefined);
  await waitFor("the user", () => credentials.current !== undefined);
  expect(credentials.current).toEqual({ username: "u1", password: "p1" });
  const body = '{"workspaceId":"ws_1","cluster":"east","policy":"orders"}';
  expect(seen).toEqual([{ url: "/gates/credentials", token: "Bearer token-1", body }]);
});

test("gate retries failed credential requests and logs each reason once, without the token", async () => {
  const { credentials, lines, seen } = await open((count, res) => {
    if (count < 3) {
      res.statusCode = 404;
      res.end(JSON.stringify({ error: { detail: "no such policy" } }));
    } else if (count === 3) res.end('{"username":""}');
    else answerUser(res);
  });
  await waitFor("the user", () => credentials.current !== undefined);
  expect(seen).toHaveLength(4);
  expect(lines[0]).toBe("Redis credentials cannot be requested; retrying the api-server answered 404: no such policy");
  expect(lines).toHaveLength(3);
  expect(lines.join()).not.toContain("token-1");
});

test("gate refreshes credentials at the requested time plus random jitter", async () => {
  const at: number[] = [];
  const { credentials } = await open((count, res) => {
    at.push(performance.now());
    if (count > 2) return void answerUser(res);
    res.statusCode = 429;
    // A `Retry-After` that is not a number of seconds is ignored.
    res.setHeader("Retry-After", count === 1 ? "1" : "Wed, 21 Oct 2099 07:28:00 GMT");
    res.end("{}");
  });
  await waitFor("the user", () => credentials.current !== undefined);
  const [first = 0, second = 0, third = 0] = at;
  expect(second - first).toBeGreaterThanOrEqual(990);
  expect(second - first).toBeLessThan(5_000);
  expect(third - second).toBeLessThan(5_000);
});

test("gate keeps valid credentials while api-servers fail and renews them before expiry", async () => {
  let isFailing = false;
  const { credentials, seen, tokenFile } = await open((count, res) => {
    if (isFailing) res.destroy();
    else answerUser(res, { ...USER, password: `p${count}`, validMs: 600 });
  });
  await waitFor("a renewal", () => seen.length >= 2 && credentials.current?.password !== "p1");
  isFailing = true;
  writeFileSync(tokenFile, "token-2");
  const failedFrom = seen.length;
  const held = credentials.current;
  await waitFor("some failures", () => seen.length > failedFrom + 1);
  expect(credentials.current?.username).toBe(held?.username);
  isFailing = false;
  await waitFor(
    "the next one",
    () => seen.at(-1)?.token === "Bearer token-2" && credentials.current?.password !== held?.password,
  );
});

test("gate requests new credentials once when Redis rejects several connections", async () => {
  const { credentials, seen } = await open((count, res) => answerUser(res, { ...USER, password: `p${count}` }));
  await waitFor("the user", () => credentials.current !== undefined);
  for (let i = 0; i < 100; i++) credentials.refused();
  expect(seen).toHaveLength(1);
  await waitFor("another user", () => {
    credentials.refused();
    return credentials.current?.password === "p2";
  });
  expect(seen).toHaveLength(2);
});
