import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli } from "../test/api-cli.ts";

let cli: ApiCli;
beforeAll(async () => {
  cli = await openApiCli();
});
afterAll(() => cli.close());

const DAY_MS = 86_400_000;

test("override commands set, replace, show, list and delete an override", async () => {
  const { namespaceId, namespace } = await cli.resources.namespace();
  const set = (identifier: string, limit: string) =>
    cli.json([
      "override",
      "set",
      "--namespace",
      namespace,
      "--identifier",
      identifier,
      "--limit",
      limit,
      "--duration",
      "30d",
    ]);
  const made = await set("ada", "10");
  expect(made).toEqual({
    overrideId: expect.stringMatching(/^rlor_/),
    identifier: "ada",
    limit: 10,
    duration: 30 * DAY_MS,
  });
  expect(await set("ada", "20")).toEqual({ ...made, limit: 20 });
  await set("team-*", "5");
  const get = (identifier: string) =>
    cli.json(["override", "get", "--namespace", namespaceId, "--identifier", identifier]);
  expect((await get("ada")).limit).toBe(20);
  expect((await get("team-red")).identifier).toBe("team-*");
  const { overrides } = await cli.json(["override", "list", "--namespace", namespace]);
  expect(overrides.map((one: { identifier: string }) => one.identifier).sort()).toEqual(["ada", "team-*"]);
  const gone = await cli.run(["override", "delete", "--namespace", namespace, "--identifier", "ada"]);
  expect(gone.out).toEqual([`the override of ada in ${namespace} is deleted`]);
  expect((await cli.run(["override", "get", "--namespace", namespace, "--identifier", "ada"])).code).toBe(1);
});

test("override list never truncates an identifier; in a narrow terminal it omits ids first", async () => {
  const { namespace } = await cli.resources.namespace();
  const identifier = "customer-with-a-long-id-".padEnd(60, "x");
  await cli.t.data("ratelimit.setOverride", { namespace, identifier, limit: 1, duration: 1000 });
  const { out } = await cli.run(["override", "list", "--namespace", namespace], {
    ...cli.as(cli.t.workspace.rootKey),
    columns: 80,
  });
  expect(out).toEqual([
    expect.stringMatching(/^IDENTIFIER +LIMIT +PER$/),
    expect.stringMatching(new RegExp(`^${identifier} +1 +1s$`)),
  ]);
});

test.each([
  { limit: "-1", duration: "1h", says: "for --limit: must be" },
  { limit: "many", duration: "1h", says: "for --limit: must be" },
  { limit: "1", duration: "soon", says: "for --duration: must be a duration" },
])("override limit of $limit per $duration is a usage error", async ({ limit, duration, says }) => {
  const ran = await cli.run([
    "override",
    "set",
    "--namespace",
    "x",
    "--identifier",
    "y",
    `--limit=${limit}`,
    "--duration",
    duration,
  ]);
  expect(ran).toMatchObject({ code: 2, text: "" });
  expect(ran.notes.join()).toContain(says);
});

test("override commands find no override of another workspace, and name a missing permission", async () => {
  const { namespace, namespaceId, identifier } = await cli.resources.override();
  const { rootKey } = await cli.t.makeWorkspace();
  const named = ["--namespace", namespace, "--identifier", identifier];
  for (const verb of ["get", "delete"]) {
    expect(await cli.run(["override", verb, ...named], cli.as(rootKey))).toMatchObject({ code: 1, text: "" });
  }
  const poor = cli.as(await cli.t.rootKey(["ratelimit.*.limit"]));
  const refused = await cli.run(["override", "delete", ...named], poor);
  expect(refused.notes.join()).toContain(`'ratelimit.${namespaceId}.delete_override'`);
  expect((await cli.run(["override", "get", ...named])).code).toBe(0);
});
