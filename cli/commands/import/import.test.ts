import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli, type RunOptions } from "../../test/api-cli.ts";

/* Imports keys of other systems into a real api-server. */

let cli: ApiCli;
let dir: string;
beforeAll(async () => {
  cli = await openApiCli();
  dir = mkdtempSync(join(tmpdir(), "postern-import-"));
});
afterAll(async () => {
  await cli.close();
  rmSync(dir, { recursive: true });
});

const run = (args: string, options?: RunOptions) => cli.run(["import", ...args.split(" ")], options);

let files = 0;
function fileOf(text: string): string {
  const path = join(dir, `file-${files++}.yaml`);
  writeFileSync(path, text);
  return path;
}

const secretOf = (who: string): string => `a-long-key-of-another-system-${who}`;
const kong = (...who: string[]): string =>
  fileOf(
    `consumers:\n${who
      .map(
        (name) => `- { username: ${name}, acls: [{ group: gold }], keyauth_credentials: [{ key: ${secretOf(name)} }] }`,
      )
      .join("\n")}\n`,
  );
const verify = (key: string) => cli.t.data("keys.verifyKey", { key });

test("import --dry-run prints the keys and sends nothing", async () => {
  const file = kong("dora", "eve");
  const ran = await run(`kong --file ${file} --dry-run`, { env: {} });
  expect(ran).toMatchObject({ code: 0, notes: [] });
  expect(ran.out[0]).toBe("2 keys can be imported, 0 cannot. Nothing was sent.");
  expect(ran.out[2]).toMatch(/^consumer dora, key 1 +dora +dora +gold +never$/);
  expect(JSON.stringify(ran)).not.toContain(secretOf("dora"));
  expect(await verify(secretOf("dora"))).toMatchObject({ valid: false, code: "NOT_FOUND" });
});

test("import of a Kong key with a ttl requires --ttl-is, and a dry run shows the expiry of the key", async () => {
  const keys = `[{ key: ${secretOf("short")}, ttl: 86400 }, { key: ${secretOf("long")} }]`;
  const file = fileOf(`consumers: [{ username: tia, keyauth_credentials: ${keys} }]`);
  const unsaid = await run(`kong --file ${file} --dry-run`);
  expect(unsaid.code).toBe(1);
  expect(unsaid.notes).toEqual([expect.stringMatching(/consumer tia, key 1: .*--ttl-is remaining\|total/)]);
  expect(unsaid.out[0]).toBe("1 key can be imported, 1 cannot. Nothing was sent.");
  const dry = await run(`kong --file ${file} --dry-run --ttl-is remaining`);
  expect(dry.code).toBe(0);
  expect(dry.out[2]).toMatch(/^consumer tia, key 1 .* 20\d\d-\d\d-\d\d .*Z \(in 24 hours\)$/);
  const apiId = await cli.resources.api();
  const beforeMs = Date.now();
  expect((await run(`kong --file ${file} --api-id ${apiId} --ttl-is remaining`)).code).toBe(0);
  const { expires = 0 } = await verify(secretOf("short"));
  expect(expires - beforeMs - 86_400_000).toBeGreaterThanOrEqual(0);
  expect(expires - Date.now() - 86_400_000).toBeLessThanOrEqual(0);
  expect((await verify(secretOf("long"))).expires).toBeUndefined();
  expect((await run(`apisix --file ${file} --dry-run --ttl-is total`)).code).toBe(2);
});

test("imported keys have their owner and roles and pass verification, and a second import changes nothing", async () => {
  const apiId = await cli.resources.api();
  const file = kong("alice", "bob");
  const first = await run(`kong --file ${file} --api-id ${apiId} --json`);
  expect(first).toMatchObject({ code: 0, notes: [] });
  expect(JSON.parse(first.out[0] ?? "")).toEqual({
    found: 2,
    imported: 2,
    left: [],
    notes: [],
    rules: [],
    short: 0,
    migrationId: expect.stringMatching(/^mig_/),
  });
  expect(await verify(secretOf("alice"))).toMatchObject({
    valid: true,
    name: "alice",
    identity: { externalId: "alice" },
    roles: ["gold"],
  });
  const second = await run(`kong --file ${file} --api-id ${apiId}`);
  expect(second.code).toBe(1);
  expect(second.out).toEqual(["0 keys imported, 2 not."]);
  expect(second.notes).toEqual([
    "not imported: consumer alice, key 1: exists already; nothing was changed",
    "not imported: consumer bob, key 1: exists already; nothing was changed",
  ]);
});

test("import lists keys that the API would reject, even in a dry run, and imports the others in batches", async () => {
  const apiId = await cli.resources.api();
  const names = Array.from({ length: 450 }, (_, i) => `many${i}`);
  const tooLong = "x".repeat(256);
  const file = kong(tooLong, ...names);
  const dry = JSON.parse((await run(`kong --file ${file} --dry-run --json`)).out[0] ?? "");
  const real = await run(`kong --file ${file} --api-id ${apiId} --json`);
  const done = JSON.parse(real.out[0] ?? "");
  expect(done).toMatchObject({ found: 451, imported: 450 });
  expect(dry.left).toEqual([{ from: `consumer ${tooLong}, key 1`, why: expect.stringMatching(/^name: /) }]);
  expect(done.left).toEqual(dry.left);
  expect(real.notes).toEqual([]);
  for (const name of ["many0", "many449"]) expect(await verify(secretOf(name))).toMatchObject({ valid: true });
});

test("import reads the file from standard input", async () => {
  const stdin = `consumers: [{ username: piped, keyauth_credentials: [{ key: ${secretOf("piped")} }] }]`;
  expect((await run("kong --file - --dry-run", { env: {}, stdin })).out[0]).toContain("1 key can be imported");
  const wrong = await run("kong --file - --dry-run", { env: {}, stdin: "consumers: [" });
  expect(wrong.notes.join()).toMatch(/standard input:\d+: /);
});

test("import shows rules for the policy, even if the file has no keys", async () => {
  const plugin = "{ name: rate-limiting, config: { minute: 5, limit_by: ip } }";
  const file = fileOf(`routes: [{ name: r, paths: [/a], plugins: [${plugin}] }]`);
  const { code, out, notes } = await run(`kong --file ${file} --dry-run`);
  expect(code).toBe(0);
  expect(out.slice(1)).toEqual([
    "1 rule for spec.rules of the policy, not applied:",
    "- { match: { path: { prefix: /a } }, access: Anonymous, ratelimits: [ { name: minute, by: [ address ], limit: 5, duration: 1m } ] }",
  ]);
  expect(notes).toEqual([expect.stringContaining("spec.clientAddress")]);
  const asJson = JSON.parse((await run(`kong --file ${file} --dry-run --json`)).out[0] ?? "");
  expect(asJson.rules).toMatchObject([{ from: "route r, rate-limiting", rule: { access: "Anonymous" } }]);
});

test("import of a file without keys or rules reports the objects whose limits are not read", async () => {
  const file = fileOf("{ apiVersion: v1, kind: KongPlugin, metadata: { name: slow }, plugin: rate-limiting }");
  const { code, notes } = await run(`kong --file ${file} --dry-run`);
  expect(code).toBe(1);
  expect(notes).toEqual([
    expect.stringMatching("contains no Kong key; .*; KongPlugin slow is not imported as a rule: "),
  ]);
});

test("import reports the number of keys that are too short", async () => {
  const ran = await run(
    `kong --file ${fileOf("consumers: [{ username: a, keyauth_credentials: [{ key: abc }] }]")} --dry-run`,
  );
  expect(ran.notes).toEqual([expect.stringContaining("1 key of fewer than 22 characters")]);
});

test.each([
  { args: "kong --dry-run", code: 2, says: "--file is required" },
  { args: "kong --file F", code: 2, says: "--api-id is required" },
  { args: "kong --file F --api-id api_gone", code: 1, says: "api_gone" },
  { args: "kuadrant --file F --dry-run", code: 1, says: "contains no Kuadrant key" },
  { args: "kong --file /nowhere --dry-run", code: 1, says: "/nowhere" },
] as const)("import command rejects the arguments $args", async ({ args, code, says }) => {
  const ran = await run(args.replace(" F", ` ${kong("alice")}`));
  expect(ran).toMatchObject({ code, out: [] });
  expect(ran.notes).toEqual([expect.stringContaining(says)]);
});

test("import names the missing permission of a root key, without printing a key", async () => {
  const apiId = await cli.resources.api();
  const rootKey = await cli.t.rootKey(["api.*.read_key"]);
  const ran = await run(`kong --file ${kong("carol")} --api-id ${apiId}`, cli.as(rootKey));
  expect(ran.code).toBe(1);
  expect(ran.notes.join()).toContain("create_key");
  expect(JSON.stringify(ran)).not.toContain(secretOf("carol"));
});

test("interrupted import reports its progress, and the next one continues", async () => {
  const apiId = await cli.resources.api();
  const names = Array.from({ length: 450 }, (_, i) => `cut${i}`);
  const file = kong(...names);
  // Server that stops responding after the first batch.
  let portions = 0;
  const broken = createServer((request, response) => {
    const isBatch = request.url?.endsWith("keys.migrateKeys") === true;
    if (isBatch && ++portions > 1) return void request.destroy();
    const { headers, method } = request;
    const admitted = httpRequest(cli.url + request.url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    request.pipe(admitted);
  });
  await new Promise<void>((resolve) => broken.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
  const env = { ...cli.as(cli.t.workspace.rootKey).env, POSTERN_API_URL: url };
  const cut = await run(`kong --file ${file} --api-id ${apiId} --timeout 2s`, { env });
  broken.closeAllConnections();
  broken.close();
  expect(cut).toMatchObject({ code: 1, out: [] });
  expect(cut.notes.join()).toContain("200 of 450 keys were imported");
  expect(JSON.stringify(cut)).not.toContain(secretOf("cut0"));
  expect((await run(`kong --file ${file} --api-id ${apiId}`)).out).toEqual(["250 keys imported, 200 not."]);
  expect(await verify(secretOf("cut449"))).toMatchObject({ valid: true });
});
