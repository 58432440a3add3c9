import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cli, openCli } from "../../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
  await cli.json("workspace create --name default");
});
afterAll(() => cli.close());

async function aNamespace(name: string, manager: string | null = null): Promise<string> {
  const id = `rlns_${name}`;
  await cli.db.query(
    `insert into ratelimit_namespaces (id, workspace_id, name, manager, created_at)
     select $1, id, $2, $3, 1 from workspaces where name = 'default'`,
    [id, name, manager],
  );
  await cli.db.query(
    `insert into ratelimit_overrides (id, workspace_id, namespace_id, identifier, max_count, duration_ms, created_at)
     select 'rlor_' || $1, workspace_id, $1, 'someone', 1, 1000, 1 from ratelimit_namespaces where id = $1`,
    [id],
  );
  return id;
}

const liveRows = async (id: string): Promise<number> => {
  const { rows } = await cli.db.query(
    `select (select count(*) from ratelimit_namespaces where id = $1 and deleted_at is null)
          + (select count(*) from ratelimit_overrides where namespace_id = $1 and deleted_at is null) as n`,
    [id],
  );
  return rows[0].n;
};

test("namespace list prints live namespaces, optionally filtered by a text", async () => {
  await aNamespace("logins");
  await aNamespace("mails", "dev/RatelimitNamespace/shop/mails");
  const { namespaces } = await cli.json("namespace list");
  expect(namespaces).toEqual([
    { namespaceId: "rlns_logins", name: "logins", manager: null, createdAt: 1 },
    { namespaceId: "rlns_mails", name: "mails", manager: "dev/RatelimitNamespace/shop/mails", createdAt: 1 },
  ]);
  expect((await cli.json("namespace list --search LOG")).namespaces).toHaveLength(1);
  expect((await cli.run("namespace list --search nothing")).notes).toEqual(["no namespaces"]);
});

test("namespace delete deletes the overrides too, by id or name, with an audit row", async () => {
  const [one, other] = [await aNamespace("byid"), await aNamespace("byname")];
  expect(await cli.json(`namespace delete --namespace ${one}`)).toMatchObject({ namespaceId: one, name: "byid" });
  expect((await cli.run("namespace delete --namespace byname")).out).toEqual([
    `rate-limit namespace ${other} is deleted, with its overrides`,
  ]);
  expect([await liveRows(one), await liveRows(other)]).toEqual([0, 0]);
  const { events } = await cli.json(`audit --target ${other}`);
  expect(events).toMatchObject([
    {
      event: "ratelimitNamespace.delete",
      actor: { type: "cli" },
      targets: [{ type: "ratelimitNamespace", id: other, name: "byname" }],
    },
  ]);
});

test("namespace delete rejects a managed namespace and names the manifest", async () => {
  const id = await aNamespace("managed", "dev/RatelimitNamespace/shop/managed");
  expect(await cli.failure("namespace delete --namespace managed", 1)).toContain(
    `The rate-limit namespace ${id} is managed by dev/RatelimitNamespace/shop/managed. Edit that manifest`,
  );
  expect(await liveRows(id)).toBe(2);
});

test("namespace delete fails the second time, and requires a name or id", async () => {
  await aNamespace("once");
  await cli.json("namespace delete --namespace once");
  for (const namespace of ["once", "never"]) {
    expect(await cli.failure(`namespace delete --namespace ${namespace}`, 1)).toContain(
      `there is no rate-limit namespace ${namespace} in workspace default; \`postern namespace list\``,
    );
  }
  expect(await cli.failure("namespace delete", 2)).toContain("--namespace is required");
});
