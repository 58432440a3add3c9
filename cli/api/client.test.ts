import { createServer, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createSocketServer, type Server as SocketServer } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CertificateFolder, openCertificateFolder } from "../../test/harness/certificate.ts";
import { freePort } from "../../test/harness/ports.ts";
import type { Connection } from "./client.ts";
import { withConnection } from "./connection.ts";

const ROOT_KEY = "root_4fGh7Jk2LmN8pQrS5tUv";

let certificates: CertificateFolder;
beforeAll(() => {
  certificates = openCertificateFolder();
});
afterAll(() => certificates.remove());

const open: (Server | SocketServer)[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) {
    if ("closeAllConnections" in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

const portOf = async (server: Server | SocketServer): Promise<number> => {
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
};

type ApiResponse = (response: ServerResponse, attempt: number) => void;

/** Starts a server with a fixed response that counts requests. */
async function aServer(respond: ApiResponse) {
  const seen = { requests: 0, authorization: "" };
  const server = createServer((request, response) => {
    seen.requests += 1;
    seen.authorization = request.headers.authorization ?? "";
    request.resume().on("end", () => respond(response, seen.requests));
  });
  return { url: `http://127.0.0.1:${await portOf(server)}`, seen };
}

const json = (response: ServerResponse, status: number, body: unknown, headers = {}): void =>
  void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
const error = (kind: string, detail: string) => ({
  meta: { requestId: "req_1" },
  error: { type: `https://docs.test/errors/${kind}`, title: "x", detail, status: 0 },
});
const workspace: ApiResponse = (response) => json(response, 200, { data: { id: "ws_1", name: "shop" }, meta: {} });

const aConnection = (url: string, of: Partial<Connection> = {}): Connection => ({
  url,
  rootKey: ROOT_KEY,
  rootKeyFrom: "profile shop",
  timeoutMs: 5_000,
  ...of,
});
const read = (connection: Connection) => withConnection(connection, (api) => api.call("workspaces.getWorkspace", {}));
const create = (connection: Connection) =>
  withConnection(connection, (api) => api.call("keys.createKey", { apiId: "api_1" }));
const failure = async (done: Promise<unknown>): Promise<string> =>
  done.then(
    () => "it succeeded",
    (error: Error) => error.message,
  );

test("API client sends the root key and returns the data of the response", async () => {
  const { url, seen } = await aServer(workspace);
  expect(await read(aConnection(url))).toEqual({ data: { id: "ws_1", name: "shop" }, next: undefined });
  expect(seen).toEqual({ requests: 1, authorization: `Bearer ${ROOT_KEY}` });
});

test.each([
  {
    name: "a page of HTML",
    respond: ((response) =>
      void response.writeHead(200, { "content-type": "text/html" }).end("<p>hello")) as ApiResponse,
    says: "returned a page of HTML, with status 200; the address is not that of an api-server",
  },
  {
    name: "HTML with 404",
    respond: ((response) => void response.writeHead(404, { "content-type": "text/html" }).end("<p>")) as ApiResponse,
    says: "returned a page of HTML, with status 404",
  },
  {
    name: "other JSON",
    respond: ((response) => json(response, 200, { ok: true })) as ApiResponse,
    says: "a response that is not from the API",
  },
  {
    name: "JSON that is null",
    respond: ((response) => json(response, 200, null)) as ApiResponse,
    says: "a response that is not from the API",
  },
  {
    name: "half of some JSON",
    respond: ((response) => void response.end('{"data":')) as ApiResponse,
    says: "a response that is not from the API",
  },
  {
    name: "a redirect",
    respond: ((response) =>
      void response.writeHead(302, { location: "https://login.example.com/" }).end()) as ApiResponse,
    says: "redirect to https://login.example.com/; use the address of the api-server itself",
  },
  {
    name: "a proxy without an api-server",
    respond: ((response) => void response.writeHead(502).end("Bad Gateway")) as ApiResponse,
    says: "responded with 502 without a reason; a proxy in front of the api-server probably cannot reach it",
  },
  {
    name: "an older API",
    respond: ((response) => json(response, 404, error("not_found", "There is nothing."))) as ApiResponse,
    says: "does not know workspaces.getWorkspace: it is older than this command",
  },
  {
    name: "a root key that is not known",
    respond: ((response) => json(response, 401, error("unauthorized", "The root key is not valid."))) as ApiResponse,
    says: "The root key is not valid. The command used the root key of profile shop and the server http://127.0.0.1:",
  },
  {
    name: "a missing permission",
    respond: ((response) =>
      json(
        response,
        403,
        error("forbidden", "The root key lacks the permission api.*.read_key or api.api_1.read_key."),
      )) as ApiResponse,
    says: "`postern rootkey create --permissions 'api.api_1.read_key'`",
  },
])("API client error for $name names the address or the next action", async ({ respond, says }) => {
  const { url } = await aServer(respond);
  expect(await failure(read(aConnection(url)))).toContain(says);
});

test("API client prints any error body, hostile or large, as one printable line", async () => {
  for (const error of [
    [],
    "x",
    { type: 1, detail: {}, errors: "no" },
    { type: "a/b", detail: "\u001b[2J".repeat(9999), errors: [null, 1] },
  ]) {
    const { url } = await aServer((response) => json(response, 400, { error }));
    const said = await failure(read(aConnection(url)));
    expect(said.length).toBeLessThan(10_000);
    expect(said).not.toContain("\u001b");
    expect(said).not.toContain("it succeeded");
  }
});

test("API client errors never contain the root key, even if the server returns it", async () => {
  const { url } = await aServer((response) => json(response, 400, error("invalid_input", `You sent ${ROOT_KEY}.`)));
  const thrown: Error = await read(aConnection(url)).then(
    () => new Error("it succeeded"),
    (error) => error,
  );
  expect(thrown.message).toContain("You sent [secret].");
  expect(`${thrown.message}${thrown.stack}`).not.toContain(ROOT_KEY);
});

test("API client times out at the deadline, even in the middle of a response", async () => {
  const silent = await aServer(() => undefined);
  const slow = await aServer((response) => void response.writeHead(200).write('{"data":'));
  for (const { url, seen } of [silent, slow]) {
    const startedMs = performance.now();
    expect(await failure(read(aConnection(url, { timeoutMs: 300 })))).toMatch(
      new RegExp(`^no response from ${url}: no response within \\d+ ms \\(--timeout\\)$`),
    );
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(seen.requests).toBe(1);
  }
});

test("API client error for a refused connection or an unknown host names the server's address", async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  expect(await failure(read(aConnection(url)))).toBe(
    `no response from ${url}: no program listens on this port (ECONNREFUSED)`,
  );
  const nowhere = await failure(read(aConnection("http://postern.invalid")));
  expect(nowhere).toMatch(/^no response from http:\/\/postern\.invalid: (the host name|DNS) /);
});

test("API client reports a wrong URL scheme", async () => {
  const { url } = await aServer(workspace);
  expect(await failure(read(aConnection(url.replace("http:", "https:"))))).toContain("is the address an http:// one?");
  const socket = createSocketServer((connection) =>
    connection
      .on("error", () => undefined)
      .resume()
      .end("SSH-2.0\r\n"),
  );
  const other = `http://127.0.0.1:${await portOf(socket)}`;
  expect(await failure(read(aConnection(other)))).toContain("it does not speak HTTP");
});

test("API client retries an idempotent call until it gets a response", async () => {
  const { url, seen } = await aServer((response, attempt) => {
    if (attempt === 1) response.destroy();
    else if (attempt === 2) json(response, 503, error("service_unavailable", "Later."), { "retry-after": "0" });
    else workspace(response, attempt);
  });
  expect((await read(aConnection(url))).data.name).toBe("shop");
  expect(seen.requests).toBe(3);
});

test("API client does not retry a call that creates something, and the error says that the call may have succeeded", async () => {
  for (const respond of [
    (response: ServerResponse) => void response.destroy(),
    (response: ServerResponse) => json(response, 503, error("service_unavailable", "Later.")),
  ]) {
    const { url, seen } = await aServer(respond);
    const said = await failure(create(aConnection(url)));
    expect(seen.requests).toBe(1);
    expect(said).toContain("keys.createKey may have succeeded; check before you retry");
  }
});

test.each([
  { kind: "service_unavailable", status: 500, says: /retry later; `curl 'URL\/readyz\?verbose'` shows which/ },
  { kind: "analytics_connection_failed", status: 503, says: /retry later/ },
  { kind: "internal_error", status: 500, says: /see the log of the api-server$/ },
])("API client error for $kind names the server and the next action", async ({ kind, status, says }) => {
  const { url } = await aServer((response) =>
    json(response, status, { ...error(kind, "It is away."), meta: { requestId: "req_1\u001b[2J" } }),
  );
  const said = await failure(read(aConnection(`${url}/base`)));
  expect(said).toMatch(`It is away. The api-server at ${url}/base responded with ${status} to req_1`);
  expect(said.replaceAll(`${url}/base`, "URL")).toMatch(says);
  expect(said).not.toContain("\u001b");
  expect(said).not.toContain(ROOT_KEY);
  // The call only read data.
  expect(said).not.toContain("may have succeeded");
});

test("API client retries any call that the quota rejected, because the call had no effect", async () => {
  const { url, seen } = await aServer((response, attempt) =>
    attempt === 1
      ? json(response, 429, error("rate_limited", "Later."), { "retry-after": "0" })
      : json(response, 200, { data: { keyId: "key_1", key: "secret" }, meta: {} }),
  );
  expect((await create(aConnection(url))).data.keyId).toBe("key_1");
  expect(seen.requests).toBe(2);
});

test("API client does not wait for a quota beyond its deadline", async () => {
  const { url, seen } = await aServer((response) =>
    json(response, 429, error("rate_limited", "Later."), { "retry-after": "60" }),
  );
  expect(await failure(read(aConnection(url)))).toContain("Later.");
  expect(seen.requests).toBe(1);
});

test("API client trusts a private CA only if one is configured, and otherwise says what to do", async () => {
  const { cert, key } = certificates.make("server");
  const other = certificates.make("other");
  const server = createTlsServer({ cert, key }, (_, response) => workspace(response, 1));
  const url = `https://127.0.0.1:${await portOf(server)}`;
  expect((await read(aConnection(url, { ca: cert }))).data.name).toBe("shop");
  expect(await failure(read(aConnection(url)))).toContain("set --ca-file");
  expect(await failure(read(aConnection(url, { ca: other.cert })))).toContain("set --ca-file");
});
