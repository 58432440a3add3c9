import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiCli, openApiCli, runPostern } from "../../test/api-cli.ts";

const DAY_MS = 86_400_000;

let cli: ApiCli;
let apiId: string;
let dir: string;
beforeAll(async () => {
  cli = await openApiCli();
  apiId = await cli.resources.api();
  dir = mkdtempSync(join(tmpdir(), "postern-key-"));
});
afterAll(async () => {
  await cli.close();
  rmSync(dir, { recursive: true });
});

const verify = (key: string, ...more: string[]) =>
  cli.run(["key", "verify", ...more], { ...cli.as(cli.t.workspace.rootKey), stdin: `${key}\n` });

describe("key create", () => {
  test("key create prints only the key, with a line end only at a terminal", async () => {
    const piped = await cli.run(["key", "create", "--api", apiId, "--prefix", "shop"]);
    expect(piped.code).toBe(0);
    expect(piped.text).toMatch(/^shop_[1-9A-Za-z]+$/);
    expect(piped.notes).toEqual([expect.stringMatching(/^key key_\w+ is created; it is shown only once$/)]);
    const shown = await cli.run(["key", "create", "--api", apiId], { ...cli.as(cli.t.workspace.rootKey), columns: 80 });
    expect(shown.text).toMatch(/^\S+\n$/);
    expect((await verify(piped.text)).code).toBe(0);
  });

  test("key create applies all options", async () => {
    const role = await cli.resources.role();
    const { keyId, key } = await cli.json([
      ...["key", "create", "--api", apiId, "--name", "Ada's", "--external-id", "ada", "--expires", "30d"],
      ...["--role", role.name, "--permission", "orders.read", "--permission", "orders.write"],
      ...["--credits", "10", "--refill", "monthly:100:15", "--byte-length", "32", "--meta", '{"plan":"pro"}'],
      ...["--ratelimit", "requests=100/1m", "--ratelimit", "exports=5/30d,named", "--disabled"],
    ]);
    const got = await cli.t.data("keys.getKey", { keyId });
    expect(got).toMatchObject({
      name: "Ada's",
      enabled: false,
      identity: { externalId: "ada" },
      meta: { plan: "pro" },
      roles: [role.name],
      credits: { remaining: 10, refill: { interval: "monthly", amount: 100, refillDay: 15 } },
    });
    expect(got.permissions.sort()).toEqual(["orders.read", "orders.write"]);
    expect(got.ratelimits.map(({ id, ...rest }: { id: string }) => rest)).toEqual(
      expect.arrayContaining([
        { name: "requests", limit: 100, duration: 60_000, autoApply: true },
        { name: "exports", limit: 5, duration: 30 * DAY_MS, autoApply: false },
      ]),
    );
    expect(Math.abs(got.expires - Date.now() - 30 * DAY_MS)).toBeLessThan(60_000);
    expect(key.length).toBeGreaterThan(40);
  });

  test.each([
    { name: "a limit that is none", args: ["--ratelimit", "requests=100"], says: "NAME=LIMIT/DURATION" },
    { name: "a window that is none", args: ["--ratelimit", "requests=100/soon"], says: "must be a duration" },
    { name: "meta that is no object", args: ["--meta", "[1]"], says: "must be a JSON object" },
    { name: "a refill without credits", args: ["--refill", "daily:1"], says: "--refill requires --credits" },
    { name: "a refill of another kind", args: ["--credits", "1", "--refill", "yearly:1"], says: "daily or monthly" },
    { name: "a time that is none", args: ["--expires", "soon"], says: "for --expires: must be a time" },
    { name: "a time in the past", args: ["--expires", "2020-01-01"], says: "for --expires: must be in the future" },
    { name: "a span of nothing", args: ["--expires", "0s"], says: "must be in the future, such as 30d" },
  ])("key create with $name is a usage error", async ({ args, says }) => {
    const ran = await cli.run(["key", "create", "--api", apiId, ...args]);
    expect(ran).toMatchObject({ code: 2, text: "" });
    expect(ran.notes.join()).toContain(says);
  });

  test("key create prints all field errors that the API reports", async () => {
    const faulty = await cli.run(["key", "create", "--api", "x", "--prefix", "a b"]);
    expect(faulty).toMatchObject({ code: 1, text: "" });
    expect(faulty.notes.join()).toMatch(/body\.apiId: .*body\.prefix: /);
    const absent = await cli.run(["key", "create", "--api", "api_4fGh7Jk2LmN8pQrS"]);
    expect(absent.notes.join()).toContain("api_4fGh7Jk2LmN8pQrS");
  });
});

test("key commands name the missing permission of a root key, and how to add it", async () => {
  const { keyId } = await cli.resources.key({ apiId });
  const poor = cli.as(await cli.t.rootKey(["api.*.verify_key"]));
  const before = await cli.t.audit();
  for (const { args, right } of [
    { args: ["create", "--api", apiId], right: "create_key" },
    { args: ["list", "--api", apiId], right: "read_key" },
    { args: ["get", "--id", keyId], right: "read_key" },
    { args: ["disable", "--id", keyId], right: "update_key" },
    { args: ["enable", "--id", keyId], right: "update_key" },
    { args: ["reroll", "--id", keyId], right: "create_key" },
    { args: ["delete", "--id", keyId], right: "delete_key" },
  ]) {
    const ran = await cli.run(["key", ...args], poor);
    expect(ran).toMatchObject({ code: 1, text: "" });
    expect(ran.notes).toHaveLength(1);
    expect(ran.notes[0]).toContain(`\`postern rootkey create --permissions 'api.${apiId}.${right}'\``);
  }
  expect(await cli.t.audit()).toEqual(before);
});

test("key commands do not find keys of another workspace", async () => {
  const other = await cli.t.makeWorkspace();
  const { keyId, key } = await cli.resources.key({ apiId });
  for (const verb of ["get", "disable", "reroll", "delete"]) {
    const ran = await cli.run(["key", verb, "--id", keyId], cli.as(other.rootKey));
    expect(ran).toMatchObject({ code: 1, text: "" });
    expect(ran.notes.join()).toContain(keyId);
  }
  expect((await cli.run(["key", "list", "--api", apiId], cli.as(other.rootKey))).code).toBe(1);
  expect((await cli.run(["key", "verify"], { ...cli.as(other.rootKey), stdin: key })).code).toBe(10);
  expect((await verify(key)).code).toBe(0);
});

describe("key verify", () => {
  test.each([
    { name: "one that is valid", body: {}, args: [], code: 0, word: "VALID" },
    { name: "a disabled one", body: { enabled: false }, args: [], code: 11, word: "DISABLED" },
    { name: "an expired one", body: { expires: 1 }, args: [], code: 12, word: "EXPIRED" },
    {
      name: "one without a permission",
      body: {},
      args: ["--permissions", "a.b"],
      code: 14,
      word: "INSUFFICIENT_PERMISSIONS",
    },
    {
      name: "one without credits",
      body: { credits: { remaining: 1 } },
      args: ["--credits", "2"],
      code: 16,
      word: "USAGE_EXCEEDED",
    },
  ])("key verify of $name exits with $code", async ({ body, args, code, word }) => {
    const { key, keyId } = await cli.resources.key({ apiId, ...body });
    const ran = await verify(key, ...args);
    expect(ran.code).toBe(code);
    expect(ran.out[0]).toMatch(new RegExp(`^code +${word}$`));
    expect(ran.text).toContain(keyId);
    expect(JSON.stringify(ran)).not.toContain(key);
    const asJson = JSON.parse((await verify(key, ...args, "--json")).text);
    expect(asJson).toMatchObject({ code: word, valid: code === 0, keyId });
  });

  test("key verify exits with 10 for an unknown key, and with 1 if the command fails", async () => {
    expect((await verify("shop_notKnown")).code).toBe(10);
    const away = await runPostern(["key", "verify"], {
      env: { POSTERN_API_URL: "http://127.0.0.1:1", POSTERN_ROOT_KEY: "x".repeat(22) },
      stdin: "shop_notKnown",
    });
    expect(away.code).toBe(1);
    expect(away.notes.join()).not.toContain("notKnown");
  });

  test("key verify charges the named limits, and spends nothing with --credits 0", async () => {
    const { key, keyId } = await cli.resources.key({
      apiId,
      credits: { remaining: 5 },
      ratelimits: [{ name: "requests", limit: 3, duration: 60_000 }],
    });
    expect((await verify(key, "--credits", "0", "--ratelimit", "requests=3")).code).toBe(0);
    expect((await verify(key, "--credits", "0", "--ratelimit", "requests")).code).toBe(15);
    expect((await cli.t.data("keys.getKey", { keyId })).credits.remaining).toBe(5);
  });

  test("key verify reads the key from a file or a prompt, and fails without a key", async () => {
    const { key } = await cli.resources.key({ apiId });
    writeFileSync(join(dir, "key"), `${key}\n`);
    expect((await verify("", "--key-file", join(dir, "key"))).code).toBe(0);
    expect((await cli.run(["key", "verify"], { ...cli.as(cli.t.workspace.rootKey), typed: key })).code).toBe(0);
    expect((await verify("")).code).toBe(2);
    expect((await verify("x".repeat(513))).code).toBe(2);
  });
});

test("key disable, enable and delete succeed, and a second delete fails", async () => {
  const { key, keyId } = await cli.resources.key({ apiId });
  expect((await cli.run(["key", "disable", "--id", keyId])).out).toEqual([`key ${keyId} is disabled`]);
  expect((await verify(key)).code).toBe(11);
  expect(await cli.json(["key", "enable", "--id", keyId])).toEqual({ keyId });
  expect((await verify(key)).code).toBe(0);
  expect((await cli.run(["key", "delete", "--id", keyId])).code).toBe(0);
  expect((await verify(key)).code).toBe(10);
  expect((await cli.run(["key", "delete", "--id", keyId])).code).toBe(1);
});

test("key reroll creates a successor and expires the old key immediately or as requested", async () => {
  const { key, keyId } = await cli.resources.key({ apiId });
  const ran = await cli.run(["key", "reroll", "--id", keyId, "--until", "7d"]);
  expect(ran.text).toMatch(/^\S+$/);
  expect(ran.notes.join()).toMatch(new RegExp(`and shown only once; ${keyId} ends .* \\(in 7 days\\)$`));
  expect([(await verify(ran.text)).code, (await verify(key)).code]).toEqual([0, 0]);
  const { expires } = await cli.t.data("keys.getKey", { keyId });
  expect(Math.abs(expires - Date.now() - 7 * DAY_MS)).toBeLessThan(120_000);
  expect((await cli.run(["key", "reroll", "--id", keyId, "--until", "2020-01-01"])).code).toBe(2);
  const next = await cli.json(["key", "reroll", "--id", keyId, "--until", "now"]);
  expect((await verify(next.key)).code).toBe(0);
  cli.t.advance(1);
  expect((await verify(key)).code).toBe(12);
});

test("key get prints settings with readable times, and the secret only on request", async () => {
  const api = await cli.resources.encryptingApi();
  const { key, keyId } = await cli.resources.key({
    apiId: api,
    recoverable: true,
    name: "\u001b[2Jx",
    expires: Date.now() + 3.2 * DAY_MS,
  });
  const plain = await cli.run(["key", "get", "--id", keyId]);
  expect(plain.text).toMatch(/expires +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \(in 3 days\)/);
  expect(plain.text).not.toContain("\u001b");
  expect(plain.text).not.toContain(key);
  expect(await cli.json(["key", "get", "--id", keyId])).not.toHaveProperty("plaintext");
  expect((await cli.json(["key", "get", "--id", keyId, "--decrypt"])).plaintext).toBe(key);
});

test("key get prints the refill, and the limits shared with the owner", async () => {
  const owner = cli.resources.name("owner");
  const ratelimits = [{ name: "shared", limit: 7, duration: 60_000, autoApply: true }];
  await cli.t.data("identities.createIdentity", { externalId: owner, ratelimits });
  const refill = { interval: "monthly", amount: 100, refillDay: 15 };
  const { keyId } = await cli.resources.key({ externalId: owner, credits: { remaining: 3, refill } });
  const { text } = await cli.run(["key", "get", "--id", keyId]);
  expect(text).toMatch(/^refill +monthly:100:15$/m);
  expect(text).toMatch(/^limits of owner +shared=7\/1m$/m);
  expect(await cli.json(["key", "get", "--id", keyId])).toMatchObject({
    refill,
    identityRatelimits: [{ name: "shared", limit: 7 }],
  });
  const plain = await cli.resources.key();
  expect((await cli.run(["key", "get", "--id", plain.keyId])).text).toMatch(/^refill +none$/m);
});

describe("key list", () => {
  test.each(["x", "a", "role_4fGh7Jk2LmN8pQrS"])(
    "key list rejects the cursor %s, which no key list returns",
    async (cursor) => {
      const ran = await cli.run(["key", "list", "--api", apiId, "--cursor", cursor]);
      expect(ran).toMatchObject({ code: 2, text: "" });
      expect(ran.notes.join()).toContain("key_…");
    },
  );

  const KEYS = 10_000;
  let many: string;
  beforeAll(async () => {
    many = await cli.resources.api();
    // Same rows as the API creates, in one statement. The ids are not in order of time.
    await cli.t.deps.db.query(
      `insert into keys (id, workspace_id, api_id, hash, start, name, created_at)
       select 'key_' || md5($1 || n), workspace_id, id, md5($1 || n), 'shop_1234', 'key number ' || n, n
         from apis, generate_series(1, ${KEYS}) n
        where id = $1`,
      [many],
    );
    // Replaces the autovacuum.
    await cli.t.deps.db.query("analyze keys");
  });

  test("key list prints 100 keys, continues at a cursor, and prints all with --all", async () => {
    const first = await cli.json(["key", "list", "--api", many]);
    expect([first.keys.length, first.hasMore]).toEqual([100, true]);
    const more = await cli.json(["key", "list", "--api", many, "--limit", "150", "--cursor", first.cursor]);
    expect(more.keys).toHaveLength(150);
    const all = await cli.json(["key", "list", "--api", many, "--all"]);
    expect([all.keys.length, all.hasMore, all.cursor]).toEqual([KEYS, false, null]);
    const ids = all.keys.map(({ keyId }: { keyId: string }) => keyId);
    expect(new Set(ids).size).toBe(KEYS);
    expect(ids.slice(100, 250)).toEqual(more.keys.map(({ keyId }: { keyId: string }) => keyId));
    const said = await cli.run(["key", "list", "--api", many, "--limit", "3"]);
    expect(said.out).toHaveLength(4);
    expect(said.notes.join()).toMatch(/^only 3 keys are shown; use --all for all, or --cursor \S+ to continue$/);
  }, 60_000);

  test.each([80, 200])("key list fits %i columns, with complete ids", async (columns) => {
    const { out } = await cli.run(["key", "list", "--api", many, "--limit", "300"], {
      ...cli.as(cli.t.workspace.rootKey),
      columns,
    });
    expect(out).toHaveLength(301);
    expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(columns);
    for (const line of out.slice(1)) expect(line).toMatch(/^key_[0-9a-f]{32} /);
  });

  test.each([
    { args: ["--all", "--limit", "3"], says: "--all and --limit exclude each other" },
    { args: ["--limit", "0"], says: "or --all" },
    { args: ["--cursor", ""], says: '"" for --cursor: must be' },
  ])("key list with the arguments $args is a usage error", async ({ args, says }) => {
    const ran = await cli.run(["key", "list", "--api", many, ...args]);
    expect(ran.code).toBe(2);
    expect(ran.notes.join()).toContain(says);
  });

  test("key list can filter by owner, and says so if an API has no keys", async () => {
    const empty = await cli.resources.api();
    expect(await cli.run(["key", "list", "--api", empty])).toMatchObject({ code: 0, text: "", notes: ["no keys"] });
    expect(await cli.json(["key", "list", "--api", empty])).toEqual({ keys: [], hasMore: false, cursor: null });
    const { keyId } = await cli.resources.key({ apiId: empty, externalId: "grace" });
    await cli.resources.key({ apiId: empty });
    const { keys } = await cli.json(["key", "list", "--api", empty, "--external-id", "grace"]);
    expect(keys.map((key: { keyId: string }) => key.keyId)).toEqual([keyId]);
  });
});

test("--timeout above the timer maximum is rejected", async () => {
  const { code, notes } = await cli.run(["key", "list", "--api", apiId, "--timeout", "30d"]);
  expect([code, notes.join()]).toEqual([2, expect.stringContaining("for --timeout: must be a duration")]);
  expect((await cli.run(["key", "list", "--api", apiId, "--timeout", "1d"])).code).toBe(0);
});

test("key list error names the server and the next action while Postgres is unavailable", async () => {
  const away = await openApiCli();
  try {
    await away.t.dropDatabase();
    const { code, notes } = await away.run(["key", "list", "--api", "api_1"]);
    expect(code).toBe(1);
    expect(notes.join()).toMatch(
      /The database cannot be reached\. The api-server at http:\/\/127\.0\.0\.1:\d+ responded with 500 to req_/,
    );
    expect(notes.join()).toContain("/readyz?verbose");
  } finally {
    await away.close();
  }
});
