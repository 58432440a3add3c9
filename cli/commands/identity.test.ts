import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli } from "../test/api-cli.ts";

let cli: ApiCli;
beforeAll(async () => {
  cli = await openApiCli();
});
afterAll(() => cli.close());

const HOUR_MS = 3_600_000;

test("identity commands create, show, change and delete an identity with limits and metadata", async () => {
  const limits = ["--ratelimit", "requests=100/1h", "--ratelimit", "exports=5/30d,named"];
  const made = await cli.json(["identity", "create", "--external-id", "ada", ...limits, "--meta", '{"plan":"pro"}']);
  expect(made).toEqual({ identityId: expect.stringMatching(/^id_/), externalId: "ada" });
  const shown = await cli.run(["identity", "get", "--identity", "ada"]);
  expect(shown.text).toMatch(/limits +.*requests=100\/1h/);
  expect(shown.text).toContain("exports=5/720h,named");
  const changed = await cli.json(["identity", "update", "--identity", made.identityId, "--ratelimit", "requests=7/1h"]);
  expect(changed).toMatchObject({
    meta: { plan: "pro" },
    ratelimits: [{ name: "requests", limit: 7, duration: HOUR_MS }],
  });
  expect(changed.ratelimits).toHaveLength(1);
  const bare = await cli.json(["identity", "update", "--identity", "ada", "--no-ratelimits", "--meta", "{}"]);
  expect(bare.ratelimits).toEqual([]);
  expect((await cli.run(["identity", "delete", "--identity", "ada"])).out).toEqual(["identity ada is deleted"]);
  const gone = await cli.run(["identity", "get", "--identity", "ada"]);
  expect(gone).toMatchObject({ code: 1, text: "" });
  expect(gone.notes.join()).toContain("ada");
});

test("identity create rejects an existing identity", async () => {
  await cli.json(["identity", "create", "--external-id", "grace"]);
  const again = await cli.run(["identity", "create", "--external-id", "grace"]);
  expect(again).toMatchObject({ code: 1, text: "" });
  expect(again.notes.join()).toContain("grace");
});

test("identity list shows matching identities and fits the terminal", async () => {
  for (const name of ["list-one", "list-two", "other"]) {
    await cli.json(["identity", "create", "--external-id", name, "--meta", JSON.stringify({ note: "x".repeat(300) })]);
  }
  const { identities, cursor } = await cli.json(["identity", "list", "--search", "list-"]);
  expect(identities.map((one: { externalId: string }) => one.externalId).sort()).toEqual(["list-one", "list-two"]);
  expect(cursor).toBeNull();
  const { out } = await cli.run(["identity", "list"], { ...cli.as(cli.t.workspace.rootKey), columns: 80 });
  expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("identity commands do not find identities of another workspace", async () => {
  const { rootKey } = await cli.t.makeWorkspace();
  const { externalId, identityId } = await cli.resources.identity();
  for (const args of [
    ["get", "--identity", identityId],
    ["update", "--identity", externalId, "--no-ratelimits"],
    ["delete", "--identity", externalId],
  ]) {
    expect(await cli.run(["identity", ...args], cli.as(rootKey))).toMatchObject({ code: 1, text: "" });
  }
  expect(JSON.parse((await cli.run(["identity", "list", "--all", "--json"], cli.as(rootKey))).text).identities).toEqual(
    [],
  );
});

test.each([
  { args: ["update", "--identity", "ada"], says: "set --ratelimit, --no-ratelimits or --meta" },
  { args: ["update", "--identity", "ada", "--no-ratelimits", "--ratelimit", "a=1/1s"], says: "exclude each other" },
  { args: ["create", "--external-id", "x", "--meta", "null"], says: "must be a JSON object" },
  { args: ["get"], says: "--identity is required" },
])("identity command $args.0 fails with the usage error: $says", async ({ args, says }) => {
  const ran = await cli.run(["identity", ...args]);
  expect(ran).toMatchObject({ code: 2, text: "" });
  expect(ran.notes.join()).toContain(says);
});

test("identity commands name the permission that a root key lacks", async () => {
  const poor = cli.as(await cli.t.rootKey(["api.*.create_key"]));
  for (const { args, right } of [
    { args: ["create", "--external-id", "x"], right: "create_identity" },
    { args: ["list"], right: "read_identity" },
    { args: ["update", "--identity", "x", "--no-ratelimits"], right: "update_identity" },
    { args: ["delete", "--identity", "x"], right: "delete_identity" },
  ]) {
    const ran = await cli.run(["identity", ...args], poor);
    expect(ran.code).toBe(1);
    expect(ran.notes.join()).toContain(`postern rootkey create --permissions 'identity.*.${right}'`);
  }
});
