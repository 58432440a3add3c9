import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { grantsOfPerson } from "../../../core/permissions/person-roles.ts";
import { type ApiCli, openApiCli, type RunOptions } from "../../test/api-cli.ts";
import { type Cli, openCli } from "../../test/cli.ts";

const stored = async ({ db }: Pick<Cli, "db">, rootKeyId: string) =>
  (await db.query("select * from root_keys where id = $1", [rootKeyId])).rows[0];

describe("rootkey create", () => {
  let cli: Cli;
  beforeAll(async () => {
    cli = await openCli();
    await cli.json("workspace create --name acme");
  });
  afterAll(() => cli.close());
  const create = (more = "") => cli.json(`rootkey create --permissions api.*.create_api${more}`);

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
    const row = await stored(cli, made.rootKeyId);
    expect(row).toMatchObject({ hash: hashKey(made.rootKey), name: "billing", expires_at: Date.UTC(2030, 0, 1) });
    expect(JSON.stringify(row)).not.toContain(made.rootKey);
    const events = await cli.audit({ targetId: made.rootKeyId });
    expect(events).toMatchObject([
      { event: "rootKey.create", actor: { type: "cli" }, targets: [{ type: "rootKey", name: "billing" }] },
    ]);
    expect(JSON.stringify(events)).not.toContain(made.rootKey);
  });

  test("rootkey create accepts apis as an alias of api and stores api", async () => {
    const made = await cli.json("rootkey create --permissions apis.*.read_key,api.*.read_key,apis.api_1.read_key");
    expect(made.permissions).toEqual(["api.*.read_key", "api.api_1.read_key"]);
    expect((await stored(cli, made.rootKeyId)).permissions).toEqual(["api.*.read_key", "api.api_1.read_key"]);
  });

  test("rootkey create accepts permissions separated by commas and repeated, under both option names", async () => {
    const of = "rootkey create --permissions api.*.create_api,api.*.read_api --permission api.*.read_key";
    const { permissions } = await cli.json(of);
    expect(permissions.sort()).toEqual(["api.*.create_api", "api.*.read_api", "api.*.read_key"]);
  });

  test("rootkey create rejects `*` as a permission", async () => {
    expect(await cli.failure("rootkey create --permissions *", 2)).toContain('"*": expected <type>.<id or *>.<action>');
  });

  test("rootkey create --role adds the permissions of the role", async () => {
    const { permissions } = await cli.json("rootkey create --role viewer --permissions api.*.create_api");
    expect(permissions).toEqual(["api.*.create_api", ...grantsOfPerson("viewer")]);
  });

  test("rootkey create prints the root key exactly once", async () => {
    const { out } = await cli.run("rootkey create --permissions api.*.create_api --workspace acme");
    expect(out.join("\n")).toMatch(/^root key {5}postern_\w+ {3}\(shown only once\)$/m);
  });

  test.each([
    { args: "--permissions ,", code: 2, says: "set --permissions or --role" },
    { args: "--name nothing", code: 2, says: "set --permissions or --role" },
    { args: "--role owner", code: 2, says: "for --role: must be one of viewer, operator, admin" },
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
  ] as const)("rootkey create rejects the arguments $args and creates no root key", async ({ args, code, says }) => {
    const count = async () => (await cli.db.query("select count(*) as n from root_keys")).rows[0].n;
    const before = await count();
    expect(await cli.failure(`rootkey create ${args}`, code)).toContain(says);
    expect(await count()).toBe(before);
  });
});

describe("commands that call the API", () => {
  let cli: ApiCli;
  beforeAll(async () => {
    cli = await openApiCli();
  });
  afterAll(() => cli.close());

  const DAY_MS = 86_400_000;
  const rowOf = (rootKeyId: string) => stored({ db: cli.t.deps.db }, rootKeyId);
  const create = (more: object = {}, rootKey = cli.t.workspace.rootKey) =>
    cli.t.data("admin.createRootKey", { name: "one", permissions: ["api.*.create_api"], ...more }, { rootKey });
  const run = (line: string, options?: RunOptions) => cli.run(line.split(" "), options);
  const json = (line: string) => cli.json(line.split(" "));

  describe("rootkey list", () => {
    test("rootkey list prints permissions and state, never the secret or hash", async () => {
      const expires = Date.now() + DAY_MS;
      const [first, second] = [await create({ name: "billing" }), await create({ expires })];
      const { rootKeys, hasMore } = await json("rootkey list --all");
      expect(hasMore).toBe(false);
      const listed = (id: string) => rootKeys.find((one: { rootKeyId: string }) => one.rootKeyId === id);
      expect(listed(first.rootKeyId)).toEqual({
        rootKeyId: first.rootKeyId,
        name: "billing",
        environment: null,
        start: first.rootKey.slice(0, "postern_".length + 4),
        permissions: ["api.*.create_api"],
        state: "active",
        enabled: true,
        expires: null,
        successorId: null,
        v1UsedOn: null,
        createdAt: expect.any(Number),
      });
      expect(listed(second.rootKeyId)).toMatchObject({ expires });
      const shown = await run("rootkey list");
      for (const text of [JSON.stringify(rootKeys), shown.text]) {
        for (const { rootKey } of [first, second]) {
          expect(text).not.toContain(rootKey);
          expect(text).not.toContain(hashKey(rootKey));
        }
      }
    });

    test("rootkey list fits a terminal, and shows only the number of permissions if there are many", async () => {
      const { rootKey } = await cli.t.makeWorkspace();
      await create(
        {
          name: "a-name-that-somebody-made-rather-long-indeed",
          permissions: ["api.*.create_api", "api.*.read_api", "api.*.verify_key"],
        },
        rootKey,
      );
      const { out } = await run("rootkey list", { ...cli.as(rootKey), columns: 140 });
      expect(out[0]).toMatch(/^ID +NAME +ENVIRONMENT +START +PERMISSIONS +STATE +EXPIRES +CREATED$/);
      expect(out.join("\n")).toContain("3 permissions");
      expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(140);
    });

    test("rootkey list --v1-since prints only root keys that called v1 since that day", async () => {
      const { id: workspaceId, rootKey } = await cli.t.makeWorkspace();
      const [old, recent] = [await create({ name: "old" }, rootKey), await create({ name: "recent" }, rootKey)];
      await create({ name: "never" }, rootKey);
      for (const [{ rootKeyId }, day] of [
        [old, "2026-01-31"],
        [recent, "2026-02-01"],
      ]) {
        await cli.t.deps.db.query(
          "insert into root_key_v1_usage (root_key_id, workspace_id, last_used_on) values ($1, $2, $3)",
          [rootKeyId, workspaceId, day],
        );
      }
      const since = async (time: string) => {
        const { text } = await run(`rootkey list --json --v1-since ${time}`, cli.as(rootKey));
        return JSON.parse(text)
          .rootKeys.map(({ rootKeyId, v1UsedOn }: Record<string, string>) => [rootKeyId, v1UsedOn])
          .sort((a: string[], b: string[]) => ((a[1] ?? "") < (b[1] ?? "") ? -1 : 1));
      };
      expect(await since("2026-01-31")).toEqual([
        [old.rootKeyId, "2026-01-31"],
        [recent.rootKeyId, "2026-02-01"],
      ]);
      expect(await since("2026-02-01T23:59:59Z")).toEqual([[recent.rootKeyId, "2026-02-01"]]);
      const { notes } = await run("rootkey list --v1-since 2026-02-02", cli.as(rootKey));
      expect(notes).toEqual(["no root keys"]);
    });
  });

  describe("rootkey rotate", () => {
    test("rootkey rotate creates a successor; the old root key expires after a day", async () => {
      const old = await create({ name: "payments", environment: "staging-2" });
      const before = Date.now();
      const made = await json(`rootkey rotate --id ${old.rootKeyId}`);
      expect(made).toEqual({
        rootKeyId: expect.stringMatching(/^rk_/),
        rootKey: expect.stringMatching(/^postern_\w{30,}$/),
        expires: null,
        predecessorExpiresAt: expect.any(Number),
      });
      expect(await rowOf(made.rootKeyId)).toMatchObject({
        hash: hashKey(made.rootKey),
        name: "payments",
        environment: "staging-2",
        permissions: ["api.*.create_api"],
        expires_at: null,
      });
      const { expires_at: endsAt, successor_id: successorId } = await rowOf(old.rootKeyId);
      expect(successorId).toBe(made.rootKeyId);
      expect(made.predecessorExpiresAt).toBe(endsAt);
      expect(endsAt).toBeGreaterThanOrEqual(before + DAY_MS - 1000);
      expect(endsAt).toBeLessThanOrEqual(Date.now() + DAY_MS);
      const again = await run(`rootkey rotate --id ${old.rootKeyId}`);
      expect(again.code).toBe(1);
      expect(again.notes.join()).toContain("has a successor");
    });

    test("rootkey rotate --until now expires the old root key immediately", async () => {
      const old = await create();
      const { out, notes } = await run(`rootkey rotate --id ${old.rootKeyId} --until now`);
      expect(out.join("\n")).toMatch(/^root key +postern_\w+ {3}\(shown only once\)$/m);
      expect(notes.join()).toContain(`root key ${old.rootKeyId} expires: `);
      expect((await rowOf(old.rootKeyId)).expires_at).toBeLessThanOrEqual(Date.now());
    });

    test.each([
      { until: "91d", code: 1, says: "body.overlap" },
      { until: "soon", code: 2, says: "or now" },
    ])("rootkey rotate rejects --until $until and changes nothing", async ({ until, code, says }) => {
      const old = await create();
      const ran = await run(`rootkey rotate --id ${old.rootKeyId} --until ${until}`);
      expect(ran).toMatchObject({ code, text: "" });
      expect(ran.notes.join()).toContain(says);
      expect(await rowOf(old.rootKeyId)).toMatchObject({ successor_id: null, expires_at: null });
    });
  });

  describe("rootkey disable, enable, update and revoke", () => {
    test("rootkey commands change one root key and write audit rows", async () => {
      const { rootKeyId: id } = await create();
      expect(await json(`rootkey disable --id ${id}`)).toMatchObject({ rootKeyId: id, enabled: false });
      expect((await rowOf(id)).enabled).toBe(false);
      expect((await run(`rootkey disable --id ${id}`)).out).toEqual([
        `root key ${id} is disabled: requests with it get 401`,
      ]);
      expect(await json(`rootkey enable --id ${id}`)).toMatchObject({ enabled: true });
      expect(await json(`rootkey update --id ${id} --expires 2020-01-01`)).toMatchObject({
        expires: Date.UTC(2020, 0, 1),
        state: "expired",
      });
      expect(await json(`rootkey update --id ${id} --expires never`)).toMatchObject({ expires: null });
      expect((await run(`rootkey revoke --id ${id}`)).out).toEqual([
        `root key ${id} is revoked: requests with it get 401`,
      ]);
      expect((await rowOf(id)).deleted_at).toEqual(expect.any(Number));
      const events = await cli.t.data("admin.listAudit", { targetId: id });
      expect(events.map((row: { description: string }) => row.description).toReversed()).toEqual([
        `Created root key ${id}`,
        `Updated root key ${id}: disabled`,
        `Updated root key ${id}: enabled`,
        `Updated root key ${id}: expires ${Date.UTC(2020, 0, 1)}`,
        `Updated root key ${id}: expires never`,
        `Revoked root key ${id}`,
      ]);
      expect(new Set(events.map((row: { actor: { type: string } }) => row.actor.type))).toEqual(new Set(["rootkey"]));
    });

    test.each(["disable", "enable", "update --expires never", "revoke", "rotate"])(
      "rootkey %s finds no root key that is revoked, unknown or of another workspace",
      async (verb) => {
        const revoked = (await create()).rootKeyId;
        await json(`rootkey revoke --id ${revoked}`);
        const foreign = (await create({}, (await cli.t.makeWorkspace()).rootKey)).rootKeyId;
        for (const id of [revoked, "rk_unknown", foreign]) {
          const ran = await run(`rootkey ${verb} --id ${id}`);
          expect(ran).toMatchObject({ code: 1, text: "" });
          expect(ran.notes.join()).toContain(`There is no root key ${id}.`);
        }
        expect(await rowOf(foreign)).toMatchObject({ enabled: true, expires_at: null, deleted_at: null });
      },
    );

    test.each(["disable", "enable", "revoke", "rotate", "update --expires never"])(
      "rootkey %s requires an id and a permission",
      async (verb) => {
        expect((await run(`rootkey ${verb}`)).notes.join()).toContain("--id is required");
        const { rootKeyId } = await create();
        const before = await rowOf(rootKeyId);
        const poor = cli.as(await cli.t.rootKey(["workspace.*.read_root_key"]));
        const ran = await run(`rootkey ${verb} --id ${rootKeyId}`, poor);
        expect(ran).toMatchObject({ code: 1, text: "" });
        expect(ran.notes.join()).toContain("postern rootkey create --permissions 'workspace.*.");
        expect(await rowOf(rootKeyId)).toEqual(before);
      },
    );

    test("rootkey update of the expiry requires a time", async () => {
      const ran = await run("rootkey update --id rk_x --expires 2026-02-30");
      expect(ran.code).toBe(2);
      expect(ran.notes.join()).toContain("for --expires: must be a time");
    });
  });
});
