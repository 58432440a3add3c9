import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiCli, openApiCli } from "../../test/api-cli.ts";
import { type Cli, openCli } from "../../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
  await cli.json("workspace create --name default");
  await cli.json("workspace create --name acme");
});
afterAll(() => cli.close());

let apis = 0;
async function anApi(workspace = "default", manager: string | null = null): Promise<string> {
  const id = `api_test${apis++}`;
  await cli.db.query(
    `insert into apis (id, workspace_id, key_space_id, name, manager, created_at)
     select $1, id, $1, 'the api', $3, 1 from workspaces where name = $2`,
    [id, workspace, manager],
  );
  return id;
}

const stored = async (id: string) => (await cli.db.query("select * from apis where id = $1", [id])).rows[0];

describe("commands that call the API", () => {
  let api: ApiCli;
  beforeAll(async () => {
    api = await openApiCli();
  });
  afterAll(() => api.close());

  test("api create creates an API if the root key has the permission", async () => {
    const { apiId, name } = await api.json(["api", "create", "--name", "orders"]);
    expect(name).toBe("orders");
    expect((await api.run(["key", "create", "--api", apiId])).code).toBe(0);
    const poor = await api.run(["api", "create", "--name", "orders"], api.as(await api.t.rootKey(["api.*.read_api"])));
    expect(poor).toMatchObject({ code: 1, text: "" });
    expect(poor.notes.join()).toContain("postern rootkey create --permissions 'api.*.create_api'");
    expect((await api.run(["api", "create", "--name", "or"])).notes.join()).toContain("body.name");
  });

  test("api list shows each API of the workspace with the same settings as api update", async () => {
    const { id: workspaceId, rootKey } = await api.t.makeWorkspace();
    expect((await api.run(["api", "list"], api.as(rootKey))).notes).toEqual(["no apis"]);
    const { apiId } = await api.t.data("apis.createApi", { name: "the api" }, { rootKey });
    const listed = async () => JSON.parse((await api.run(["api", "list", "--json"], api.as(rootKey))).text);
    const row = {
      apiId,
      name: "the api",
      ipAllowList: [],
      deleteProtection: false,
      defaultPrefix: null,
      defaultByteLength: null,
      keyEncryption: false,
      manager: null,
      createdAt: expect.any(Number),
    };
    expect(await listed()).toEqual({ apis: [row], hasMore: false, cursor: null });
    const { out } = await api.run(["api", "list"], api.as(rootKey));
    expect(out[1]).toMatch(new RegExp(`^${apiId} +the api +none +off +none +none +off +- +20`));
    const update = `api update --workspace ${workspaceId} --id ${apiId} --ip-allow-list ::1 --default-prefix a --json`;
    const updated = JSON.parse((await api.run(update.split(" "))).text);
    expect(updated).toEqual({ ...row, ipAllowList: ["::1"], defaultPrefix: "a" });
    expect((await listed()).apis).toEqual([updated]);
  });

  test("api list lists only APIs that the root key may read", async () => {
    const ids = [await api.resources.api(), await api.resources.api()];
    const one = api.as(await api.t.rootKey([`api.${ids[0]}.read_api`]));
    const { text } = await api.run(["api", "list", "--json"], one);
    expect(JSON.parse(text).apis.map(({ apiId }: { apiId: string }) => apiId)).toEqual([ids[0]]);
    const none = await api.run(["api", "list"], api.as(await api.t.rootKey(["api.*.create_api"])));
    expect(none).toMatchObject({ code: 1, text: "" });
    expect(none.notes.join()).toContain("read_api");
  });
});

describe("api update", () => {
  test("api update changes only the given settings, even for a managed API", async () => {
    const id = await anApi("default", "dev/ApiKeyPolicy/shop/orders");
    const before = await stored(id);
    const first = await cli.json(
      `api update --id ${id} --ip-allow-list 10.0.0.1,2001:db8::/32,10.0.0.1 --default-prefix acme_1 --default-byte-length 255`,
    );
    expect(first).toMatchObject({
      apiId: id,
      ipAllowList: ["10.0.0.1", "2001:db8::/32"],
      deleteProtection: false,
      defaultPrefix: "acme_1",
      defaultByteLength: 255,
    });
    const second = await cli.json(`api update --id ${id} --delete-protection on --key-encryption on`);
    expect(second).toEqual({ ...first, deleteProtection: true, keyEncryption: true });
    const undo = "--ip-allow-list none --default-prefix none --default-byte-length none";
    await cli.json(`api update --id ${id} ${undo} --delete-protection off --key-encryption off`);
    expect(await stored(id)).toEqual({ ...before, updated_at: expect.any(Number) });
    const events = await cli.audit({ targetId: id, event: "api.update" });
    expect(events.map(({ description }) => description).toReversed()).toEqual([
      `Updated API ${id}: ipAllowList, defaultPrefix, defaultByteLength`,
      `Updated API ${id}: deleteProtection, keyEncryption`,
      `Updated API ${id}: ipAllowList, deleteProtection, defaultPrefix, defaultByteLength, keyEncryption`,
    ]);
  });

  test("api update without a change writes neither the API nor an audit row", async () => {
    const id = await anApi();
    await cli.json(`api update --id ${id} --delete-protection off --ip-allow-list none`);
    expect((await stored(id)).updated_at).toBeNull();
    expect(await cli.audit({ targetId: id })).toEqual([]);
  });

  test("api update adds an outbox entry, so that every cache drops the API", async () => {
    const id = await anApi();
    await cli.db.query("delete from outbox");
    await cli.json(`api update --id ${id} --ip-allow-list ::1`);
    expect((await cli.db.query("select kind, id from outbox")).rows).toEqual([{ kind: "api", id }]);
  });

  test.each([
    ["0.0.0.0/0", "::/0", "10.1.2.3/8", "10.0.0.1/32"],
    ["::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "2001:db8::/32", "::1/128"],
    Array.from({ length: 100 }, (_, i) => `10.0.${i}.0/24`),
  ])("api update accepts the IP allow-list %j, up to 100 addresses and ranges", async (...list) => {
    const id = await anApi();
    expect(await cli.json(`api update --id ${id} --ip-allow-list ${list.join()}`)).toMatchObject({ ipAllowList: list });
    expect(await stored(id)).toMatchObject({ ip_allow_list: list });
  });

  test.each([
    { set: "", says: "no setting is given; set at least one of --ip-allow-list, --delete-protection" },
    { set: "--ip-allow-list 10.0.0.0/33", says: '"10.0.0.0/33" is not an IP address or range, such as 10.0.0.1' },
    { set: "--ip-allow-list 10.0.0.1,localhost", says: '"localhost" is not an IP address or range' },
    { set: "--ip-allow-list ,", says: "--ip-allow-list has no address; `none` removes the list" },
    {
      set: `--ip-allow-list ${Array.from({ length: 101 }, (_, i) => `10.0.${i >> 8}.${i & 255}`).join()}`,
      says: "at most 100",
    },
    { set: "--delete-protection yes", says: 'invalid value "yes" for --delete-protection: must be on or off' },
    { set: "--key-encryption 1", says: 'invalid value "1" for --key-encryption: must be on or off' },
    { set: "--default-prefix nine_char", says: "--default-prefix: a default prefix has 1 to 8" },
    { set: "--default-prefix a-b", says: "--default-prefix: a default prefix has 1 to 8" },
    { set: "--default-byte-length 15", says: "for --default-byte-length: must be an integer from 16 to 255, or none" },
    { set: "--default-byte-length 256", says: "for --default-byte-length: must be an integer from 16 to 255, or none" },
  ])("api update rejects '$set' and sets none of the other options", async ({ set, says }) => {
    const id = await anApi();
    const more = set === "" ? "" : ` ${set}${set.includes("--delete") ? "" : " --delete-protection on"}`;
    expect(await cli.failure(`api update --id ${id}${more}`, 2)).toContain(says);
    expect(await stored(id)).toMatchObject({ delete_protection: false, updated_at: null });
  });

  test("api update rejects an API that is unknown, deleted or of another workspace", async () => {
    const [deleted, foreign] = [await anApi(), await anApi("acme")];
    await cli.db.query("update apis set deleted_at = 1 where id = $1", [deleted]);
    for (const id of ["api_unknown", deleted, foreign]) {
      expect(await cli.failure(`api update --id ${id} --delete-protection on`, 1)).toContain(
        `there is no API ${id} in workspace default; \`postern api list\` lists them`,
      );
    }
    expect((await stored(foreign)).delete_protection).toBe(false);
  });
});
