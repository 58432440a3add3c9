import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cli, openCli } from "../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
});
afterAll(() => cli.close());

test("migration create adds a migration to the workspace's list", async () => {
  await cli.json("workspace create --name acme");
  const made = await cli.json("migration create --workspace acme --name old-gateway --algorithm prefixed");
  expect(made).toEqual({
    migrationId: expect.stringMatching(/^mig_/),
    name: "old-gateway",
    algorithm: "prefixed",
    createdAt: expect.any(Number),
  });
  expect(await cli.json("migration list --workspace acme")).toEqual({ migrations: [made], hasMore: false });
  expect((await cli.run("migration list")).notes).toEqual(["no migrations"]);
  expect(await cli.audit({ workspace: "acme", targetId: made.migrationId })).toMatchObject([
    { event: "migration.create", actor: { type: "cli" }, targets: [{ type: "migration", name: "old-gateway" }] },
  ]);
});

test.each([
  { args: "--name a", code: 2, says: "--algorithm is required" },
  { args: "--algorithm sha256", code: 2, says: "--name is required" },
  {
    args: "--name a --algorithm md5",
    code: 2,
    says: 'invalid value "md5" for --algorithm: must be sha256 or prefixed',
  },
  { args: "--name a --algorithm sha256 --workspace nobody", code: 1, says: "there is no workspace nobody" },
] as const)("migration create rejects the arguments $args", async ({ args, code, says }) => {
  expect(await cli.failure(`migration create ${args}`, code)).toContain(says);
});
