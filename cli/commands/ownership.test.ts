import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cli, openCli } from "../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
  await cli.json("workspace create --name default");
  await cli.json("workspace create --name other");
});
afterAll(() => cli.close());

const MANAGER = { api: "main/ApiKeyPolicy/shop/orders", role: "main/Role/shop/editor" };

/** Inserts an API and a role that `main` manages and an API that it released, also in another workspace. Ids begin with the prefix. */
async function rows(prefix: string, cluster = "main"): Promise<void> {
  const of = (manager: string) => manager.replace("main", cluster);
  for (const workspace of ["default", "other"]) {
    const id = (one: string) => `${one}_${prefix}_${workspace}`;
    const { rows: found } = await cli.db.query("select id from workspaces where name = $1", [workspace]);
    const workspaceId = found[0].id;
    const insert =
      "insert into apis (id, workspace_id, key_space_id, name, manager, created_at) values ($1, $2, $1, $3, $4, 1)";
    await cli.db.query(insert, [id("api"), workspaceId, "orders", of(MANAGER.api)]);
    await cli.db.query(insert, [id("left"), workspaceId, "left", null]);
    await cli.db.query(insert, [id("free"), workspaceId, "free", null]);
    await cli.db.query("insert into roles (id, workspace_id, name, manager, created_at) values ($1, $2, $3, $4, 1)", [
      id("role"),
      workspaceId,
      `editor ${prefix}`,
      of(MANAGER.role),
    ]);
    await cli.db.query("insert into orphaned_objects values ($1, 'api', $2, $3, 1700000000000)", [
      workspaceId,
      id("left"),
      of("main/ApiKeyPolicy/shop/former"),
    ]);
  }
}
async function listed(args = ""): Promise<string[]> {
  const { out } = await cli.run(`ownership list${args} --json`);
  const { objects } = JSON.parse(out[0] ?? "") as { objects: Array<Record<string, string | null>> };
  return objects.map(({ id, manager, lastManager }) => `${id} ${manager ?? "-"} ${lastManager ?? "-"}`);
}

test("ownership list prints managed and orphaned objects, of all managers or by prefix", async () => {
  await rows("a");
  const all = [
    "left_a_default - main/ApiKeyPolicy/shop/former",
    `api_a_default ${MANAGER.api} -`,
    `role_a_default ${MANAGER.role} -`,
  ];
  expect(await listed()).toEqual(all);
  expect(await listed(" --manager main")).toEqual(all);
  expect(await listed(" --manager main/Role")).toEqual([all[2]]);
  expect(await listed(` --manager ${MANAGER.api}`)).toEqual([all[1]]);
  // Matches complete parts only, not a prefix of a cluster name and not a pattern.
  expect(await listed(" --manager mai")).toEqual([]);
  expect(await listed(" --manager m.in")).toEqual([]);
  expect((await cli.json("ownership list --limit 1")).objects).toHaveLength(1);
  const { releasedAt } = (await cli.json("ownership list --limit 1")).objects[0];
  expect(new Date(releasedAt).toISOString()).toBe("2023-11-14T22:13:20.000Z");
});

test("ownership transfer moves objects of this workspace to another cluster, with audit rows", async () => {
  expect((await cli.json("ownership transfer --from main --to east")).objects).toHaveLength(3);
  expect(await listed(" --manager main")).toEqual([]);
  expect(await listed()).toEqual([
    "left_a_default - east/ApiKeyPolicy/shop/former",
    "api_a_default east/ApiKeyPolicy/shop/orders -",
    "role_a_default east/Role/shop/editor -",
  ]);
  expect(await listed(" --workspace other --manager main")).toHaveLength(3);
  const events = await cli.audit({ targetId: "api_a_default" });
  expect(events).toMatchObject([
    {
      event: "api.update",
      actor: { type: "cli" },
      description: `Transferred API api_a_default of ${MANAGER.api} to east`,
    },
  ]);
});

test("ownership transfer changes nothing if the new manager already manages another object of the kind", async () => {
  await rows("b", "west");
  expect(await cli.failure("ownership transfer --from west --to east", 1)).toMatch(
    /east\/ApiKeyPolicy\/shop\/orders already manages another object of this kind/,
  );
  expect(await listed(" --manager west")).toHaveLength(3);
});

test("ownership release makes managed and orphaned objects unmanaged", async () => {
  expect((await cli.run("ownership release --manager west")).code).toBe(0);
  expect(await listed(" --manager west")).toEqual([]);
  const { rows: managers } = await cli.db.query("select manager from apis where id = 'api_b_default'");
  expect(managers).toEqual([{ manager: null }]);
  expect((await cli.run("ownership release --manager west")).notes).toEqual(["no objects"]);
});

test.each([
  "ownership release --manager main//shop",
  "ownership list --manager a/b/c/d/e",
  "ownership transfer --from main --to east/Role",
  "ownership transfer --from main/Role/shop --to main/ApiKeyPolicy/shop",
])("ownership command %s is a usage error", async (line) => {
  expect(await cli.failure(line, 2)).toMatch(/CLUSTER|same number of parts/);
});
