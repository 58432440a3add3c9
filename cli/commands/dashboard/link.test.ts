import { userInfo } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { type Cli, openCli } from "../../test/cli.ts";

let cli: Cli;
let acmeId: string;
beforeAll(async () => {
  cli = await openCli();
  acmeId = (await cli.json("workspace create --name acme")).workspaceId;
});
afterAll(() => cli.close());

const storedLink = async (id: string) =>
  (await cli.db.query("select * from sign_in_links where id = $1", [id])).rows[0];
const tokenIn = (address: string): string => new URL(address).hash.slice("#token=".length);

test("dashboard link can grant one workspace; the database and the audit log contain only the link's hash", async () => {
  const before = Date.now();
  const made = await cli.json("dashboard link --role operator --workspace acme --name Ada");
  expect(made).toMatchObject({ name: "Ada", role: "operator", workspaceId: acmeId });
  expect(made.dashboardUrl).toMatch(/^http:\/\/127\.0\.0\.1:8080\/dashboard\/sign-in#token=[\w-]{43}$/);
  expect(made.expires - before).toBeGreaterThanOrEqual(300_000);
  expect(made.expires - Date.now()).toBeLessThanOrEqual(300_000);
  const row = await storedLink(made.linkId);
  const token = tokenIn(made.dashboardUrl);
  expect(row).toMatchObject({ token_hash: hashKey(token), workspace_id: acmeId, role: "operator", used_at: null });
  expect(JSON.stringify(row)).not.toContain(token);
  const events = await cli.audit({ workspace: "acme", targetId: made.linkId });
  expect(events).toMatchObject([
    { event: "signInLink.create", actor: { type: "cli" }, targets: [{ type: "signInLink", name: "Ada" }] },
  ]);
  expect(JSON.stringify(events)).not.toContain(token);
});

test("dashboard link signs in an admin of all workspaces under the current user's name by default", async () => {
  const made = await cli.json("dashboard link");
  expect(made).toMatchObject({ role: "admin", workspaceId: null });
  expect(made.name).toContain(userInfo().username);
  expect((await storedLink(made.linkId)).workspace_id).toBeNull();
});

test("two sign-in links have different tokens", async () => {
  const [one, other] = [await cli.json("dashboard link"), await cli.json("dashboard link")];
  expect(tokenIn(one.dashboardUrl)).not.toBe(tokenIn(other.dashboardUrl));
});

test("dashboard link output explains the link", async () => {
  const { out } = await cli.run("dashboard link --role viewer --dashboard-url https://postern.example.com/");
  const text = out.join("\n");
  expect(text).toMatch(/^open {6}https:\/\/postern\.example\.com\/dashboard\/sign-in#token=[\w-]{43}$/m);
  expect(text).toMatch(/^of {8}all workspaces$/m);
  expect(text).toMatch(/, once$/m);
});

test.each([
  ["--role owner", 'invalid value "owner" for --role: must be one of viewer, operator, admin'],
  ["--dashboard-url http://postern.example.com", "https"],
  ["--dashboard-url https://postern.example.com/below", "path"],
  ["--dashboard-url nowhere", "nowhere"],
])("dashboard link rejects the options %s", async (args, message) => {
  expect(await cli.failure(`dashboard link ${args}`, 2)).toContain(message);
});

test("dashboard link requires an existing workspace", async () => {
  expect(await cli.failure("dashboard link --workspace nobody", 1)).toContain("there is no workspace nobody");
});
