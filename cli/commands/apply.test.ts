import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli, type RunOptions } from "../test/api-cli.ts";

let cli: ApiCli;
let dir: string;
beforeAll(async () => {
  cli = await openApiCli();
  dir = mkdtempSync(join(tmpdir(), "postern-apply-"));
});
afterAll(async () => {
  await cli.close();
  rmSync(dir, { recursive: true });
});

const object = (kind: string, at: string, spec: object) => {
  const [namespace, name] = at.split("/");
  return { apiVersion: "postern.dev/v1alpha1", kind, metadata: { name, namespace }, spec };
};
const role = (name: string, permissions: readonly string[] = ["a.read"], more: object = {}) =>
  object("Role", `shop/${name}`, { name, permissions, ...more });
const policy = (name: string, more: object = {}) =>
  object("ApiKeyPolicy", `shop/${name}`, { api: { name }, target: { port: 8080 }, ...more });
const namespace = (name: string, at = "shop", more: object = {}) =>
  object("RatelimitNamespace", `${at}/${name}`, { name, ...more });
const override = (name: string, ref: object, limit = 5) =>
  object("RatelimitOverride", `shop/${name}`, { namespaceRef: ref, identifier: name, limit, duration: "1m" });

let folders = 0;
function folderOf(...objects: object[]): string {
  const folder = join(dir, String(folders++));
  mkdirSync(folder);
  for (const [i, one] of objects.entries()) writeFileSync(join(folder, `${i}.json`), JSON.stringify(one, undefined, 1));
  return folder;
}
const run = (command: string, folder: string, args: readonly string[] = [], options: RunOptions = {}) =>
  cli.run([command, "-f", folder, ...args], options);

test("apply stores referenced objects before those that refer to them, and a second run changes nothing", async () => {
  const limited = { ratelimits: [{ namespace: "first-limits", by: ["key"], limit: 5, duration: "1m" }], match: {} };
  // The files are in the wrong order.
  const folder = folderOf(
    override("first-acme", { name: "first-limits" }),
    policy("first", { rules: [limited] }),
    role("first-editor"),
    namespace("first-limits"),
  );
  const dry = await run("apply", folder, ["--dry-run", "--name", "first"]);
  expect(dry.code).toBe(2);
  expect(dry.out.filter((line) => /^\S/.test(line))).toEqual([
    "+ RatelimitNamespace shop/first-limits would be created",
    "+ Role shop/first-editor would be created",
    "+ ApiKeyPolicy shop/first would be created",
    "+ RatelimitOverride shop/first-acme would be created",
    "4 created (dry run)",
  ]);
  const { rows } = await cli.t.deps.db.query("select from roles where name = 'first-editor'");
  expect(rows).toEqual([]);
  const made = await run("apply", folder, ["--name", "first"]);
  expect(made.code).toBe(0);
  expect(made.out.at(-1)).toBe("4 created");
  expect(made.out).toContain('    permissions: → ["a.read"]');
  const again = await run("apply", folder, ["--name", "first"]);
  expect(again).toMatchObject({ code: 0, out: ["4 unchanged"] });
  expect(await run("diff", folder, ["--name", "first"])).toMatchObject({ code: 0, out: ["4 unchanged (dry run)"] });
  const found = await cli.t.deps.db.query("select manager from roles where name = 'first-editor'");
  expect(found.rows).toEqual([{ manager: "cli.first/Role/shop/first-editor" }]);
});

test("diff shows each changed path with both values and exits with 2, and --json prints the same changes", async () => {
  await run("apply", folderOf(policy("diffed"), role("diffed")));
  const folder = folderOf(policy("diffed", { mode: "Audit" }), role("diffed", ["a.read", "b.write"]));
  const shown = await run("diff", folder);
  expect(shown).toMatchObject({
    code: 2,
    out: [
      "~ Role shop/diffed would be updated",
      '    permissions: ["a.read"] → ["a.read","b.write"]',
      "~ ApiKeyPolicy shop/diffed would be updated",
      '    policy.mode: "Enforce" → "Audit"',
      "2 updated (dry run)",
    ],
  });
  const json = await cli.json(["diff", "-f", folder], 2);
  expect(json.objects.map(({ object, action }: { object: string; action: string }) => [object, action])).toEqual([
    ["Role shop/diffed", "updated"],
    ["ApiKeyPolicy shop/diffed", "updated"],
  ]);
  expect(json.objects[1].changes).toEqual([{ path: "policy.mode", old: "Enforce", new: "Audit" }]);
});

test("colors appear only on a terminal without NO_COLOR", async () => {
  const folder = folderOf(role("painted"));
  const { env } = cli.as(cli.t.workspace.rootKey);
  expect((await run("diff", folder, [], { columns: 80 })).text).toContain("\u001b[32m+ Role shop/painted");
  for (const options of [{ columns: 80, env: { ...env, NO_COLOR: "1" } }, {}]) {
    expect((await run("diff", folder, [], options)).text).not.toContain("\u001b");
  }
});

test("error for a rejected object names its file and line, and the other objects are still applied", async () => {
  await cli.t.data("permissions.createRole", { name: "taken" });
  const folder = folderOf(role("taken"), role("free"));
  const ran = await run("apply", folder);
  expect(ran.code).toBe(1);
  expect(ran.out[0]).toMatch(
    new RegExp(`^! Role shop/taken failed: ${folder}/0.json:9: The role taken already exists and is unmanaged`),
  );
  expect(ran.out[0]?.match(/The role taken/g)).toHaveLength(1);
  expect(ran.out.at(-1)).toBe("1 failed, 1 created");
  // Another set has the role, so the name of the set decides.
  const other = await run("apply", folderOf(role("free")), ["--name", "other"]);
  expect(other.out[0]).toContain("is managed by cli.default/Role/shop/free");
  expect(other.code).toBe(1);
});

test("set of manifests with a problem is rejected completely before anything is sent", async () => {
  const folder = folderOf(role("whole"), role("whole2", ["not a slug"]));
  const ran = await run("apply", folder, [], { env: { POSTERN_API_URL: "http://127.0.0.1:1", POSTERN_ROOT_KEY: "x" } });
  expect(ran.code).toBe(1);
  expect(ran.notes.join("\n")).toContain(`${folder}/1.json:11: Role shop/whole2: spec.permissions[0]:`);
  expect(ran.notes.at(-1)).toBe("1 problem; nothing is changed");
  expect(ran.out).toEqual([]);
});

test("reference to an object in another Kubernetes namespace requires an entry in that object's allowedNamespaces", async () => {
  const ref = { name: "shared", namespace: "platform" };
  const allowed = folderOf(namespace("shared", "platform", { allowedNamespaces: ["shop"] }), override("guest", ref));
  expect((await run("apply", allowed)).out.at(-1)).toBe("2 created");
  const forbidden = folderOf(namespace("shared", "platform"), override("guest", ref, 6));
  expect((await run("apply", forbidden)).code).toBe(1);
  // Without the manifest of the namespace, nobody says that the reference is allowed.
  const alone = await run("apply", folderOf(override("guest", ref, 7)));
  expect(alone.code).toBe(1);
  expect(alone.out[0]).toContain("does not allow references from the namespace shop");
});

test("set of manifests with more shared namespaces than fit in one call is applied", async () => {
  const shared = Array.from({ length: 260 }, (_, i) =>
    namespace(`many-${i}`, "platform", { allowedNamespaces: ["shop"] }),
  );
  const folder = folderOf(...shared, override("many", { name: "many-259", namespace: "platform" }), role("many"));
  expect(await run("apply", folder, ["--name", "many"])).toMatchObject({ code: 0 });
});

test("policy can use the API of a policy in another namespace only if that policy allows it", async () => {
  const other = (name: string, more: object) =>
    object("ApiKeyPolicy", `platform/${name}`, { api: { name }, target: { port: 8080 }, ...more });
  // More policies that allow the reference than one call may name.
  const others = Array.from({ length: 257 }, (_, i) => other(`others-${i}`, { allowedNamespaces: ["shop"] }));
  const made = await cli.json(["apply", "-f", folderOf(...others, other("owner", {})), "--name", "api-id"], 0);
  const { apiId: id } = made.objects.find(({ object }: { object: string }) => object.endsWith("/owner")).ids;
  const user = policy("user", { api: { id } });
  const refused = await run("apply", folderOf(...others, other("owner", {}), user), ["--name", "api-id"]);
  expect(refused.out[0]).toContain("does not allow references from the namespace shop");
  const allowing = other("owner", { allowedNamespaces: ["shop"] });
  expect((await run("apply", folderOf(allowing, user), ["--name", "api-id"])).out.at(-1)).toBe(
    "1 unchanged, 1 created",
  );
});

test("prune deletes only objects that the set created and no longer contains, in reverse order", async () => {
  const all = [namespace("pruned-limits"), role("pruned"), override("pruned", { name: "pruned-limits" })];
  await run("apply", folderOf(role("untouched")), ["--name", "untouched"]);
  await run("apply", folderOf(...all, role("stays")), ["--name", "pruning"]);
  const rest = folderOf(role("stays"));
  const refused = await run("apply", rest, ["--prune", "--name", "pruning"]);
  expect(refused.code).toBe(1);
  expect(refused.notes).toEqual([
    "Role shop/pruned may own keys, or keys may have it",
    "nothing is changed; delete them with --yes",
  ]);
  expect((await run("diff", rest, ["--prune", "--name", "pruning"])).code).toBe(2);
  for (const [typed, code] of [
    ["n", 1],
    ["y", 0],
  ] as const) {
    const ran = await run("apply", rest, ["--prune", "--name", "pruning"], { typed });
    expect(ran.code).toBe(code);
    if (code === 1) continue;
    expect(ran.out).toEqual([
      "- RatelimitOverride shop/pruned deleted",
      "- Role shop/pruned deleted",
      "- RatelimitNamespace shop/pruned-limits deleted",
      "1 unchanged, 3 deleted",
    ]);
  }
  const { rows } = await cli.t.deps.db.query("select from roles where name = 'untouched'");
  expect(rows).toHaveLength(1);
});

test("delete follows spec.deletionPolicy, keeps an API with keys, and can be repeated", async () => {
  const folder = folderOf(
    policy("doomed", { deletionPolicy: "Delete" }),
    role("doomed", [], { deletionPolicy: "Orphan" }),
  );
  const { objects } = await cli.json(["apply", "-f", folder]);
  const apiId = objects.find(({ object }: { object: string }) => object.startsWith("ApiKeyPolicy")).ids.apiId;
  const { keyId } = await cli.t.data("keys.createKey", { apiId });
  const refused = await run("delete", folder, ["--yes"]);
  expect(refused.code).toBe(1);
  expect(refused.out[0]).toMatch(/^! ApiKeyPolicy shop\/doomed failed: .*0\.json:\d+: The API api_\w+ still has keys/);
  expect(refused.out[1]).toBe("- Role shop/doomed released");
  await cli.t.data("keys.deleteKey", { keyId });
  expect((await run("delete", folder, ["--dry-run"])).code).toBe(2);
  expect((await run("delete", folder, ["--yes"])).out).toEqual([
    "- ApiKeyPolicy shop/doomed deleted",
    "1 deleted, 1 absent",
  ]);
  expect(await run("delete", folder, ["--yes"])).toMatchObject({ code: 0, out: ["2 absent"] });
});

test("ApiKey is skipped with a note, and a root key of another workspace is rejected", async () => {
  const key = object("ApiKey", "shop/billing", { policyRef: { name: "keyed" }, secretRef: { name: "billing" } });
  const ran = await run("apply", folderOf(policy("keyed"), key));
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.notes.join()).toContain("ApiKey shop/billing is skipped: the Secret of an ApiKey needs a cluster");
  const other = await run("apply", folderOf(role("nowhere")), ["--workspace", "other"]);
  expect(other.code).toBe(1);
  expect(other.notes.join()).toMatch(/the root key belongs to the workspace \S+ and not to other; nothing is changed/);
  expect((await run("apply", folderOf(role("named")), ["--name", "a/b"])).code).toBe(2);
});

test("run ends when the server becomes unavailable halfway, and the output says which objects were changed", async () => {
  let calls = 0;
  const server = createServer((request, response) => {
    calls += 1;
    const data = { outcome: "created", ids: {}, changes: [], warnings: [] };
    if (calls > 1) request.socket.destroy();
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ data }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const env = {
    POSTERN_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    POSTERN_ROOT_KEY: cli.t.workspace.rootKey,
    POSTERN_TIMEOUT: "2s",
  };
  const ran = await run("apply", folderOf(role("one"), role("two"), role("three")), [], { env });
  server.closeAllConnections();
  server.close();
  expect(ran.code).toBe(1);
  expect(ran.out).toEqual(["+ Role shop/one created", "1 created"]);
  expect(ran.notes.join("\n")).toContain("127.0.0.1");
});
