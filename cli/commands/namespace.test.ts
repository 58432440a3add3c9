import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli, type RunOptions } from "../test/api-cli.ts";

let cli: ApiCli;
beforeAll(async () => {
  cli = await openApiCli();
});
afterAll(() => cli.close());

const run = (line: string, options?: RunOptions) => cli.run(line.split(" "), options);
const json = (line: string) => cli.json(line.split(" "));

async function aNamespace(name: string, manager: string | null = null): Promise<string> {
  const id = `rlns_${name}`;
  await cli.t.deps.db.query(
    "insert into ratelimit_namespaces (id, workspace_id, name, manager, created_at) values ($1, $4, $2, $3, 1)",
    [id, name, manager, cli.t.workspace.id],
  );
  await cli.t.deps.db.query(
    `insert into ratelimit_overrides (id, workspace_id, namespace_id, identifier, max_count, duration_ms, created_at)
     select 'rlor_' || $1, workspace_id, $1, 'someone', 1, 1000, 1 from ratelimit_namespaces where id = $1`,
    [id],
  );
  return id;
}

const liveRows = async (id: string): Promise<number> => {
  const { rows } = await cli.t.deps.db.query(
    `select (select count(*) from ratelimit_namespaces where id = $1 and deleted_at is null)
          + (select count(*) from ratelimit_overrides where namespace_id = $1 and deleted_at is null) as n`,
    [id],
  );
  return rows[0].n;
};

test("namespace list prints namespaces that are not deleted, optionally filtered by text", async () => {
  await aNamespace("logins");
  await aNamespace("mails", "dev/RatelimitNamespace/shop/mails");
  const { namespaces } = await json("namespace list");
  expect(namespaces).toEqual([
    { namespaceId: "rlns_logins", name: "logins", manager: null, createdAt: 1 },
    { namespaceId: "rlns_mails", name: "mails", manager: "dev/RatelimitNamespace/shop/mails", createdAt: 1 },
  ]);
  expect((await json("namespace list --search LOG")).namespaces).toHaveLength(1);
  expect((await run("namespace list --search nothing")).notes).toEqual(["no namespaces"]);
});

test("namespace list continues at a cursor, which is a namespace name", async () => {
  const first = await json("namespace list --limit 1");
  const rest = await json(`namespace list --all --cursor ${first.cursor}`);
  expect([...first.namespaces, ...rest.namespaces]).toEqual((await json("namespace list --all")).namespaces);
});

test("namespace delete takes an id or name, also deletes the overrides, and writes an audit row", async () => {
  const [one, other] = [await aNamespace("byid"), await aNamespace("byname")];
  expect(await json(`namespace delete --namespace ${one}`)).toEqual({ namespace: one });
  expect((await run("namespace delete --namespace byname")).out).toEqual([
    "rate-limit namespace byname is deleted, with its overrides",
  ]);
  expect([await liveRows(one), await liveRows(other)]).toEqual([0, 0]);
  expect(await cli.t.data("admin.listAudit", { targetId: other })).toMatchObject([
    {
      event: "ratelimitNamespace.delete",
      actor: { type: "rootkey" },
      targets: [{ type: "ratelimitNamespace", id: other, name: "byname" }],
    },
  ]);
});

test("namespace delete rejects a managed namespace and names the manifest", async () => {
  const id = await aNamespace("managed", "dev/RatelimitNamespace/shop/managed");
  const ran = await run("namespace delete --namespace managed");
  expect(ran).toMatchObject({ code: 1, text: "" });
  expect(ran.notes.join()).toContain(
    `The rate-limit namespace ${id} is managed by dev/RatelimitNamespace/shop/managed. Edit that manifest`,
  );
  expect(await liveRows(id)).toBe(2);
});

test("namespace delete fails for a deleted namespace, in another workspace, without permission or without a name", async () => {
  const id = await aNamespace("once");
  const poor = await run(
    "namespace delete --namespace once",
    cli.as(await cli.t.rootKey(["ratelimit.*.read_namespace"])),
  );
  expect(poor.notes.join()).toContain(`ratelimit.${id}.delete_namespace`);
  const foreign = await run("namespace delete --namespace once", cli.as((await cli.t.makeWorkspace()).rootKey));
  expect(foreign).toMatchObject({ code: 1, text: "" });
  expect(await liveRows(id)).toBe(2);
  await json("namespace delete --namespace once");
  for (const namespace of ["once", "never"]) {
    const ran = await run(`namespace delete --namespace ${namespace}`);
    expect(ran).toMatchObject({ code: 1, text: "" });
    expect(ran.notes.join()).toContain(namespace);
  }
  expect((await run("namespace delete")).notes.join()).toContain("--namespace is required");
});
