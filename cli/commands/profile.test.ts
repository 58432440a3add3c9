import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { freePort } from "../../test/harness/ports.ts";
import { writeDevState } from "../dev-state.ts";
import { type ApiCli, openApiCli, type RunOptions, runPostern } from "../test/api-cli.ts";

let cli: ApiCli;
let file: string;
beforeAll(async () => {
  cli = await openApiCli();
  file = join(cli.configHome, "postern/profiles.json");
});
afterAll(() => cli.close());
afterEach(() => rmSync(dirname(file), { recursive: true, force: true }));

/** Runs without server and root key in the environment. */
const run = (args: readonly string[], { env, ...rest }: RunOptions = {}) =>
  runPostern(args, { env: { XDG_CONFIG_HOME: cli.configHome, ...env }, ...rest });
const add = (name: string, rootKey: string, ...more: string[]) =>
  run(["profile", "add", "--name", name, "--api-url", cli.url, ...more], { stdin: `${rootKey}\n` });
const explainMissingKey = ["explain", "--key-id", "key_4fGh7Jk2LmN8pQrS"];

test("profile add checks the profile and stores it in a file that only its owner can read", async () => {
  const { rootKey, id } = cli.t.workspace;
  const added = await add("shop", rootKey);
  expect(added).toMatchObject({ code: 0, notes: [`the root key belongs to workspace ${id}`] });
  expect(added.out).toEqual([`profile shop is stored in ${file} as the default`]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
  expect((await run(explainMissingKey)).notes.join()).toContain("key_4fGh7Jk2LmN8pQrS");
});

test("profile add accepts the JSON of rootkey create on standard input", async () => {
  const { rootKey } = cli.t.workspace;
  const made = (object: object) =>
    run(["profile", "add", "--name", "made", "--api-url", cli.url], { stdin: `${JSON.stringify(object)}\n` });
  expect(await made({ rootKeyId: "rk_1", rootKey, permissions: Array(500).fill("api.*.read_key") })).toMatchObject({
    code: 0,
  });
  expect(JSON.parse(readFileSync(file, "utf8")).profiles.made.rootKey).toBe(rootKey);
  const without = await made({ rootKeyId: "rk_1", secret: rootKey });
  expect(without.code).toBe(2);
  expect(without.notes.join()).not.toContain(rootKey);
});

test("commands use the workspace of the named profile or, if none is named, of the default profile", async () => {
  const other = await cli.t.makeWorkspace();
  const { keyId } = await cli.resources.key();
  await add("first", cli.t.workspace.rootKey);
  expect((await add("second", other.rootKey)).out.join()).toContain(
    "`postern profile use --name second` makes it the default",
  );
  const explain = (...more: string[]) => run(["explain", "--key-id", keyId, ...more]);
  expect((await explain()).code).toBe(0);
  expect((await explain("--profile", "second")).code).toBe(1);
  expect((await run(["explain", "--key-id", keyId], { env: { POSTERN_PROFILE: "second" } })).code).toBe(1);
  expect((await run(["profile", "use", "--name", "second"])).code).toBe(0);
  expect((await explain()).code).toBe(1);
  expect((await explain("--profile", "first")).code).toBe(0);
  expect(JSON.parse((await run(["profile", "list", "--json"])).text)).toEqual({
    profiles: [
      { name: "first", apiUrl: cli.url, caFile: null, current: false },
      { name: "second", apiUrl: cli.url, caFile: null, current: true },
    ],
    hasMore: false,
  });
});

test("profile commands never print a root key", async () => {
  const { rootKey } = cli.t.workspace;
  const rans = [
    await add("shop", rootKey),
    await add("shop", rootKey),
    await add("shop", rootKey, "--replace", "--json"),
    await run(["profile", "list"]),
    await run(["profile", "list", "--json"]),
    await run(["profile", "use", "--name", "shop", "--json"]),
    await run(["profile", "remove", "--name", "shop", "--json"]),
  ];
  expect(rans.map(({ code }) => code)).toEqual([0, 2, 0, 0, 0, 0, 0]);
  expect(JSON.stringify(rans)).not.toContain(rootKey);
  expect(readFileSync(file, "utf8")).not.toContain(rootKey);
});

test("profile add prompts for the root key at a terminal", async () => {
  const typed = cli.t.workspace.rootKey;
  const ran = await run(["profile", "add", "--name", "typed", "--api-url", cli.url], { typed });
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.notes[0]).toContain("root key (hidden)");
});

test.each([0o640, 0o604, 0o660, 0o644])(
  "profile file with mode %o is rejected, and the error says how to fix it",
  async (mode) => {
    await add("shop", cli.t.workspace.rootKey);
    chmodSync(file, mode);
    for (const args of [["profile", "list"], explainMissingKey]) {
      const ran = await run(args);
      expect(ran).toMatchObject({ code: 1, out: [] });
      expect(ran.notes.join()).toContain(`chmod 600 ${file}`);
    }
    chmodSync(file, 0o600);
    expect((await run(["profile", "list"])).code).toBe(0);
  },
);

test.each([
  { name: "half of it", text: '{"profiles":{"shop":{"rootKey":"root_verySecret' },
  { name: "another shape", text: '{"profiles":{"shop":{"rootKey":{"root_verySecret":1}}}}' },
  { name: "no JSON", text: "root_verySecret" },
])("invalid profile file ($name) is rejected without showing its content", async ({ text }) => {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
  const ran = await run(["profile", "list"], { env: { POSTERN_DEBUG: "1" } });
  expect(ran.code).toBe(1);
  expect(ran.notes.join()).toContain("is not a valid profiles file");
  expect(ran.notes.join()).not.toContain("verySecret");
});

test("profile add rejects an invalid root key or unreachable server unless unchecked", async () => {
  const foreign = await add("shop", "root_notKnownAtAll1234567890");
  expect(foreign.code).toBe(1);
  expect(foreign.notes.join()).not.toContain("notKnownAtAll");
  const url = `http://127.0.0.1:${await freePort()}`;
  const away = ["profile", "add", "--name", "away", "--api-url", url];
  expect((await run(away, { stdin: "root_laterThanAllOthers1" })).notes.join()).toContain(
    `no response from ${url}: no program listens on this port`,
  );
  expect((await run(["profile", "list"])).notes).toEqual(["no profiles"]);
  expect((await run([...away, "--unchecked"], { stdin: "root_laterThanAllOthers1" })).code).toBe(0);
});

test.each([
  { name: "an empty one", stdin: "\n" },
  { name: "two lines", stdin: "root_verySecret\nroot_verySecret2\n" },
  { name: "a control character", stdin: "root_very\u0007Secret" },
  { name: "a long one", stdin: `root_verySecret${"x".repeat(600)}` },
  { name: "a file by mistake", stdin: `root_verySecret${"x".repeat(10_000)}` },
])("profile add rejects an invalid root key without printing it: $name", async ({ stdin }) => {
  const ran = await run(["profile", "add", "--name", "shop", "--api-url", cli.url], { stdin });
  expect(ran.code).toBeGreaterThan(0);
  expect(ran.notes.join()).not.toContain("very");
});

test("profile together with a server address is rejected, so that no root key goes to another server", async () => {
  await add("shop", cli.t.workspace.rootKey);
  const both = await run([...explainMissingKey, "--profile", "shop", "--api-url", "http://127.0.0.1:1"]);
  expect(both).toMatchObject({ code: 2 });
  expect(both.notes.join()).toContain("--profile sets the server");
  const env = { POSTERN_PROFILE: "shop", POSTERN_ROOT_KEY: "root_other", POSTERN_API_URL: "http://127.0.0.1:1" };
  expect((await run(explainMissingKey, { env })).notes.join()).toContain("POSTERN_PROFILE conflicts with");
  // Arguments override the environment.
  expect((await run([...explainMissingKey, "--profile", "shop"], { env })).notes.join()).toContain(
    "key_4fGh7Jk2LmN8pQrS",
  );
  // A root key without a server is not completed by the profile.
  expect((await run(explainMissingKey, { env: { POSTERN_ROOT_KEY: "root_other" } })).notes.join()).toContain(
    "set POSTERN_API_URL",
  );
  expect((await run(explainMissingKey, { env: { POSTERN_API_URL: cli.url } })).notes.join()).toContain(
    "set POSTERN_ROOT_KEY",
  );
});

test("error for an invalid address does not repeat it, because it may be the root key", async () => {
  const env = { POSTERN_API_URL: "root_verySecret", POSTERN_ROOT_KEY: "x" };
  const ran = await run(explainMissingKey, { env });
  expect(ran.code).toBe(2);
  expect(ran.notes.join()).not.toContain("verySecret");
});

test("profile stores the CA of its server, and every command uses the CA", async () => {
  const certificates = openCertificateFolder();
  const { cert, key, certFile } = certificates.make("server");
  // TLS proxy in front of the api-server.
  const front = createServer({ cert, key }, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = { authorization: request.headers.authorization ?? "", "content-type": "application/json" };
    const answer = await fetch(`${cli.url}${request.url}`, { method: "POST", headers, body: Buffer.concat(chunks) });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  onTestFinished(async () => {
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
    certificates.remove();
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const { rootKey } = cli.t.workspace;
  const overTls = (...more: string[]) =>
    run(["profile", "add", "--name", "tls", "--api-url", url, ...more], { stdin: rootKey });
  expect((await overTls()).notes.join()).toContain("set --ca-file");
  expect((await overTls("--ca-file", "/nowhere.crt")).notes.join()).toContain("/nowhere.crt");
  expect((await overTls("--ca-file", certFile)).code).toBe(0);
  expect(JSON.parse(readFileSync(file, "utf8")).profiles.tls.caFile).toBe(certFile);
  const { keyId } = await cli.resources.key();
  expect((await run(["key", "get", "--id", keyId])).code).toBe(0);
  const env = { POSTERN_API_URL: url, POSTERN_ROOT_KEY: rootKey };
  expect((await run(["key", "get", "--id", keyId], { env })).code).toBe(1);
  expect((await run(["key", "get", "--id", keyId], { env: { ...env, POSTERN_CA_FILE: certFile } })).code).toBe(0);
});

test("command without a server says how to set one", async () => {
  const ran = await run(explainMissingKey);
  expect(ran.code).toBe(2);
  expect(ran.notes.join()).toContain("`postern profile add`, set POSTERN_API_URL and POSTERN_ROOT_KEY, or start");
});

test("command without a server or default profile calls the running postern dev; --data-dir selects it", async () => {
  const { rootKey } = cli.t.workspace;
  const dataDir = join(cli.configHome, "data");
  const state = { pid: process.pid, databaseUrl: "postgres://127.0.0.1:1/x", apiUrl: cli.url };
  const { keyId } = await cli.resources.key();
  const get = (...more: string[]) =>
    run(["key", "get", "--id", keyId, ...more], { env: { POSTERN_DATA_DIR: dataDir } });
  expect((await get()).code).toBe(2);
  writeDevState(dataDir, state);
  expect((await get()).code).toBe(2);
  writeDevState(dataDir, { ...state, rootKey });
  expect((await get()).code).toBe(0);
  await add("other", (await cli.t.makeWorkspace()).rootKey);
  expect((await get()).code).toBe(1);
  expect((await get("--data-dir", dataDir)).code).toBe(0);
  expect((await get("--data-dir", dataDir, "--profile", "other")).code).toBe(1);
  const stale = { ...state, rootKey: "root_notKnownAtAll1234567890" };
  writeDevState(dataDir, stale);
  const refused = await get("--data-dir", dataDir);
  expect(refused.notes.join()).toContain("the root key of the running `postern dev`");
  expect(refused.notes.join()).not.toContain(stale.rootKey);
});

test.each(["use", "remove"])("profile %s rejects a name that no profile has", async (verb) => {
  expect((await run(["profile", verb, "--name", "constructor"])).notes.join()).toContain(
    "there is no profile constructor",
  );
});

test("removing the default profile leaves no default profile and the other profiles unchanged", async () => {
  await add("first", cli.t.workspace.rootKey);
  await add("second", cli.t.workspace.rootKey);
  expect((await run(["profile", "remove", "--name", "first"])).code).toBe(0);
  expect((await run(explainMissingKey)).code).toBe(2);
  expect((await run([...explainMissingKey, "--profile", "second"])).code).toBe(1);
});
