import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { type Cli, openCli } from "../../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
  await cli.json("workspace create --name acme");
});
afterAll(() => cli.close());

const create = (more = "") => cli.json(`rootkey create --permissions api.*.create_api${more}`);
const stored = async (rootKeyId: string) =>
  (await cli.db.query("select * from root_keys where id = $1", [rootKeyId])).rows[0];

describe("rootkey create", () => {
  test("rootkey create creates the default workspace if missing; the database has only the hash", async () => {
    const made = await create(",api.*.verify_key,api.*.verify_key --name billing --expires 2030-01-01");
    expect(made).toEqual({
      rootKeyId: expect.stringMatching(/^rk_/),
      rootKey: expect.stringMatching(/^postern_\w{30,}$/),
      workspaceId: expect.stringMatching(/^ws_/),
      permissions: ["api.*.create_api", "api.*.verify_key"],
      name: "billing",
      environment: null,
      expires: Date.UTC(2030, 0, 1),
    });
    const row = await stored(made.rootKeyId);
    expect(row).toMatchObject({ hash: hashKey(made.rootKey), name: "billing", expires_at: Date.UTC(2030, 0, 1) });
    expect(JSON.stringify(row)).not.toContain(made.rootKey);
    const { events } = await cli.json(`audit --target ${made.rootKeyId}`);
    expect(events).toMatchObject([
      { event: "rootKey.create", actor: { type: "cli" }, targets: [{ type: "rootKey", name: "billing" }] },
    ]);
    expect(JSON.stringify(events)).not.toContain(made.rootKey);
  });

  test("rootkey create accepts apis as an alias of api and stores api", async () => {
    const made = await cli.json("rootkey create --permissions apis.*.read_key,api.*.read_key,apis.api_1.read_key");
    expect(made.permissions).toEqual(["api.*.read_key", "api.api_1.read_key"]);
    expect((await stored(made.rootKeyId)).permissions).toEqual(["api.*.read_key", "api.api_1.read_key"]);
  });

  test("rootkey create accepts permissions separated by commas and repeated, under both option names", async () => {
    const of = "rootkey create --permissions api.*.create_api,api.*.read_api --permission api.*.read_key";
    const { permissions } = await cli.json(of);
    expect(permissions.sort()).toEqual(["api.*.create_api", "api.*.read_api", "api.*.read_key"]);
  });

  test("rootkey create rejects a lone star as a permission", async () => {
    expect(await cli.failure("rootkey create --permissions *", 2)).toContain('"*": expected <type>.<id or *>.<action>');
  });

  test("rootkey create prints the root key once", async () => {
    const { out } = await cli.run("rootkey create --permissions api.*.create_api --workspace acme");
    expect(out.join("\n")).toMatch(/^root key {5}postern_\w+ {3}\(shown only once\)$/m);
  });

  test.each([
    { args: "--permissions ,", code: 2, says: "--permissions is empty" },
    {
      args: `--permissions ${Array.from({ length: 1001 }, (_, i) => `api.${i}.read_api`).join()}`,
      code: 2,
      says: "--permissions names more than 1000",
    },
    { args: "--permissions api.*.fly", code: 2, says: '"api.*.fly": expected one of create_api' },
    { args: "--permissions api.*.create_api --environment .prod", code: 2, says: "for --environment: must be" },
    { args: "--permissions api.*.create_api --expires soon", code: 2, says: "for --expires: must be a time" },
    { args: "--permissions api.*.create_api --expires 2020-01-01", code: 2, says: "must be in the future" },
    { args: `--permissions api.*.create_api --name ${"x".repeat(256)}`, code: 2, says: "for --name: must be 1 to 255" },
    { args: "--permissions api.*.create_api --workspace nobody", code: 1, says: "there is no workspace nobody" },
  ] as const)("makes none of $args", async ({ args, code, says }) => {
    const count = async () => (await cli.db.query("select count(*) as n from root_keys")).rows[0].n;
    const before = await count();
    expect(await cli.failure(`rootkey create ${args}`, code)).toContain(says);
    expect(await count()).toBe(before);
  });
});

describe("rootkey list", () => {
  test("rootkey list prints permissions and state, oldest first, never the secret or hash", async () => {
    const [first, second] = [
      await create(" --workspace acme --name a"),
      await create(" --workspace acme --expires 1h"),
    ];
    const { rootKeys, hasMore } = await cli.json("rootkey list --workspace acme");
    expect(hasMore).toBe(false);
    expect(rootKeys.at(-2)).toEqual({
      rootKeyId: first.rootKeyId,
      workspaceId: first.workspaceId,
      name: "a",
      environment: null,
      start: first.rootKey.slice(0, "postern_".length + 4),
      permissions: ["api.*.create_api"],
      enabled: true,
      expires: null,
      successorId: null,
      v1UsedOn: null,
      createdAt: expect.any(Number),
    });
    const shown = await cli.run("rootkey list --workspace acme");
    for (const text of [JSON.stringify(rootKeys), shown.out.join("\n")]) {
      for (const { rootKey } of [first, second]) {
        expect(text).not.toContain(rootKey);
        expect(text).not.toContain(hashKey(rootKey));
      }
    }
  });

  test("rootkey list fits a terminal, and counts permissions if there are many", async () => {
    await cli.json("workspace create --name narrow");
    await create(
      ",api.*.read_api,api.*.verify_key --workspace narrow --name a-name-that-somebody-made-rather-long-indeed",
    );
    const { out } = await cli.run("rootkey list --workspace narrow", { columns: 140 });
    expect(out[0]).toMatch(/^ID +NAME +ENVIRONMENT +START +PERMISSIONS +STATE +EXPIRES +CREATED$/);
    expect(out[1]).toContain("3 permissions");
    expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(140);
  });

  test("rootkey list --v1-since prints only root keys that called v1 since that day", async () => {
    await cli.json("workspace create --name movers");
    const [old, recent] = [await create(" --workspace movers --name old"), await create(" --workspace movers")];
    await create(" --workspace movers --name never");
    for (const [{ rootKeyId, workspaceId }, day] of [
      [old, "2026-01-31"],
      [recent, "2026-02-01"],
    ]) {
      await cli.db.query(
        "insert into root_key_v1_usage (root_key_id, workspace_id, last_used_on) values ($1, $2, $3)",
        [rootKeyId, workspaceId, day],
      );
    }
    const since = async (time: string) => {
      const { rootKeys } = await cli.json(`rootkey list --workspace movers --v1-since ${time}`);
      return rootKeys.map(({ rootKeyId, v1UsedOn }: Record<string, string>) => [rootKeyId, v1UsedOn]);
    };
    expect(await since("2026-01-31")).toEqual([
      [old.rootKeyId, "2026-01-31"],
      [recent.rootKeyId, "2026-02-01"],
    ]);
    expect(await since("2026-02-01T23:59:59Z")).toEqual([[recent.rootKeyId, "2026-02-01"]]);
    const { notes } = await cli.run("rootkey list --workspace movers --v1-since 2026-02-02");
    expect(notes).toEqual(["no root keys"]);
  });

  test("rootkey list says that there are no root keys", async () => {
    await cli.json("workspace create --name empty");
    expect(await cli.run("rootkey list --workspace empty")).toEqual({ code: 0, out: [], notes: ["no root keys"] });
    const { out } = await cli.run("rootkey list --workspace empty --json");
    expect(out).toEqual(['{"rootKeys":[],"hasMore":false}']);
  });
});

describe("rootkey rotate", () => {
  const DAY_MS = 86_400_000;

  test("rootkey rotate creates a successor with the same permissions; the old one expires after a day", async () => {
    const old = await create(" --workspace acme --name payments --environment staging-2");
    const before = Date.now();
    const made = await cli.json(`rootkey rotate --workspace acme --id ${old.rootKeyId}`);
    expect(made).toMatchObject({ name: "payments", environment: "staging-2", permissions: ["api.*.create_api"] });
    expect(made.rootKeyId).not.toBe(old.rootKeyId);
    expect(await stored(made.rootKeyId)).toMatchObject({ hash: hashKey(made.rootKey), expires_at: null });
    const { expires_at: endsAt } = await stored(old.rootKeyId);
    expect(endsAt).toBeGreaterThanOrEqual(before + DAY_MS);
    expect(endsAt).toBeLessThanOrEqual(Date.now() + DAY_MS);
    const { rootKeys } = await cli.json("rootkey list --workspace acme");
    expect(rootKeys.find((one: { rootKeyId: string }) => one.rootKeyId === old.rootKeyId)).toMatchObject({
      successorId: made.rootKeyId,
      environment: "staging-2",
    });
    expect(await cli.failure(`rootkey rotate --workspace acme --id ${old.rootKeyId}`, 1)).toContain(
      "already has a successor",
    );
  });

  test("rootkey rotate --until now expires the old root key immediately", async () => {
    const old = await create(" --workspace acme");
    const { notes } = await cli.run(`rootkey rotate --workspace acme --id ${old.rootKeyId} --until now`);
    expect(notes.join()).toContain(`root key ${old.rootKeyId} expires: `);
    expect((await stored(old.rootKeyId)).expires_at).toBeLessThanOrEqual(Date.now());
  });

  test.each([
    { until: "91d", code: 2, says: "--until is more than 90 days ahead" },
    { until: "soon", code: 2, says: "or now" },
    { until: "1h", code: 1, says: "there is no root key", workspace: "default" },
  ] as { until: string; code: 1 | 2; says: string; workspace?: string }[])(
    "makes none with --until $until in another workspace or too late",
    async ({ until, code, says, workspace = "acme" }) => {
      const old = await create(" --workspace acme");
      const text = await cli.failure(
        `rootkey rotate --workspace ${workspace} --id ${old.rootKeyId} --until ${until}`,
        code,
      );
      expect(text).toContain(says);
      expect(await stored(old.rootKeyId)).toMatchObject({ successor_id: null, expires_at: null });
    },
  );
});

describe("rootkey disable, enable, update and revoke", () => {
  test("rootkey update, revoke and the like change one root key and write audit rows", async () => {
    const { rootKeyId: id } = await create();
    expect(await cli.json(`rootkey disable --id ${id}`)).toMatchObject({ rootKeyId: id, enabled: false });
    expect((await stored(id)).enabled).toBe(false);
    expect((await cli.run(`rootkey disable --id ${id}`)).out).toEqual([
      `root key ${id} is disabled: requests with it get 401`,
    ]);
    expect(await cli.json(`rootkey enable --id ${id}`)).toMatchObject({ enabled: true });
    expect(await cli.json(`rootkey update --id ${id} --expires 2020-01-01`)).toMatchObject({
      expires: Date.UTC(2020, 0, 1),
    });
    const { out } = await cli.run("rootkey list");
    expect(out.find((line) => line.startsWith(id))).toContain("expired");
    expect(await cli.json(`rootkey update --id ${id} --expires never`)).toMatchObject({ expires: null });
    expect((await cli.run(`rootkey revoke --id ${id}`)).out).toEqual([
      `root key ${id} is revoked: requests with it get 401`,
    ]);
    expect((await stored(id)).deleted_at).toEqual(expect.any(Number));
    const { events } = await cli.json(`audit --target ${id}`);
    expect(events.map((row: { description: string }) => row.description).toReversed()).toEqual([
      `Created root key ${id}`,
      `Updated root key ${id}: disabled`,
      `Updated root key ${id}: enabled`,
      `Updated root key ${id}: expires ${Date.UTC(2020, 0, 1)}`,
      `Updated root key ${id}: expires never`,
      `Revoked root key ${id}`,
    ]);
  });

  test.each(["disable", "enable", "update --expires never", "revoke"])(
    "%s finds no key that is revoked, unknown or of another workspace",
    async (verb) => {
      const revoked = (await create()).rootKeyId;
      await cli.json(`rootkey revoke --id ${revoked}`);
      const foreign = (await create(" --workspace acme")).rootKeyId;
      for (const id of [revoked, "rk_unknown", foreign]) {
        expect(await cli.failure(`rootkey ${verb} --id ${id}`, 1)).toContain(
          `there is no root key ${id} in workspace default; \`postern rootkey list\` lists them`,
        );
      }
      expect(await stored(foreign)).toMatchObject({ enabled: true, expires_at: null, deleted_at: null });
    },
  );

  test.each(["disable", "enable", "revoke", "update --expires never"])("%s needs an id", async (verb) => {
    expect(await cli.failure(`rootkey ${verb}`, 2)).toContain("--id is required");
  });

  test("rootkey update requires a time", async () => {
    expect(await cli.failure("rootkey update --id rk_x --expires 2026-02-30", 2)).toContain(
      "for --expires: must be a time",
    );
  });
});
