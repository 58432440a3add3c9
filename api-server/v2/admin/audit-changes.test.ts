import { afterAll, beforeAll, expect, test } from "vitest";
import { changeApi } from "../../domain/administration/apis.ts";
import { changeRootKey } from "../../domain/administration/root-keys.ts";
import { changeWorkspace } from "../../domain/administration/workspaces.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { makeResources, policyBody, type Resources } from "../../test/resources.ts";

/* What each kind of update leaves in the audit log: the fields that changed, before and after, and nothing else. */

let t: TestApp;
let resources: Resources;
beforeAll(async () => {
  t = await buildTestApp();
  resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
});
afterAll(() => t.close());

async function lastChange(targetId: string, event: string) {
  const [row] = await t.data("admin.listAudit", { targetId, event, limit: 1 });
  return { before: row.before, after: row.after };
}

const person = () => ({
  ...t.deps,
  actor: { type: "cli" as const, id: "cli", name: "test" },
});

test("audit entry of a key update lists changed fields", async () => {
  const permission = await resources.permission();
  const role = await resources.role();
  const { keyId } = await resources.key({ name: "old", credits: { remaining: 5 } });
  await t.data("keys.updateKey", {
    keyId,
    name: "new",
    enabled: false,
    meta: { secretly: "personal@example.com" },
    credits: { remaining: 9 },
    roles: [role.name],
    permissions: [permission.slug],
    ratelimits: [{ name: "requests", limit: 3, duration: 60_000, autoApply: true }],
  });
  const { before, after } = await lastChange(keyId, "key.update");
  expect(before).toEqual({
    name: "old",
    enabled: true,
    meta: null,
    roles: [],
    permissions: [],
    ratelimits: [],
    credits: { remaining: 5 },
  });
  expect(after).toEqual({
    name: "new",
    enabled: false,
    meta: { members: 1, bytes: 35 },
    roles: [role.name],
    permissions: [permission.slug],
    ratelimits: [{ name: "requests", limit: 3, duration: 60_000, autoApply: true }],
    credits: { remaining: 9 },
  });
  await t.data("keys.updateCredits", { keyId, operation: "decrement", value: 2 });
  expect(await lastChange(keyId, "key.update")).toEqual({
    before: { credits: { remaining: 9 } },
    after: { credits: { remaining: 7 } },
  });
  const { rows } = await t.deps.db.query(
    "select string_agg(before::text || after::text, '') as text from audit_log where before is not null",
  );
  expect(rows[0].text).not.toContain("personal@example.com");
});

test("audit entry of an update without changes lists no fields", async () => {
  const { keyId } = await resources.key({ name: "same" });
  await t.data("keys.updateKey", { keyId, name: "same" });
  expect(await lastChange(keyId, "key.update")).toEqual({ before: undefined, after: undefined });
});

test("audit entry of an API update lists changed fields, including for updates by the CLI", async () => {
  const apiId = await resources.api();
  await t.data("apis.updateApi", { apiId, name: "renamed" });
  expect((await lastChange(apiId, "api.update")).after).toEqual({ name: "renamed" });
  await t.data("apis.updateApi", { apiId, deleteProtection: true });
  expect(await lastChange(apiId, "api.update")).toEqual({
    before: { deleteProtection: false },
    after: { deleteProtection: true },
  });
  await changeApi(person() as never, { workspaceId: t.workspace.id, apiId, change: { ipAllowList: ["10.0.0.0/8"] } });
  expect(await lastChange(apiId, "api.update")).toEqual({
    before: { ipAllowList: [] },
    after: { ipAllowList: ["10.0.0.0/8"] },
  });
});

test("audit entry of an identity update ignores the order of limits", async () => {
  const { identityId, externalId } = await resources.identity();
  const limits = ["b", "a"].map((name) => ({ name: `limit-${name}`, limit: 1, duration: 60_000, autoApply: false }));
  await t.data("identities.updateIdentity", { identity: externalId, ratelimits: limits });
  const sorted = [...limits].reverse();
  expect((await lastChange(identityId, "identity.update")).after).toEqual({ ratelimits: sorted });
  await t.data("identities.updateIdentity", { identity: externalId, ratelimits: sorted, meta: { a: 1 } });
  expect(await lastChange(identityId, "identity.update")).toEqual({
    before: { meta: null },
    after: { meta: { members: 1, bytes: 7 } },
  });
});

test("audit entries of roles, permissions and overrides list changed fields", async () => {
  const role = await resources.role();
  await t.data("permissions.updateRole", { role: role.name, description: "for editors" });
  expect(await lastChange(role.roleId, "role.update")).toEqual({
    before: { description: null },
    after: { description: "for editors" },
  });
  const { permissionId, slug } = await resources.permission();
  await t.data("permissions.updatePermission", { permission: slug, name: "Renamed" });
  expect((await lastChange(permissionId, "permission.update")).after).toEqual({ name: "Renamed" });
  const { namespace, identifier, overrideId } = await resources.override();
  await t.data("ratelimit.setOverride", { namespace, identifier, limit: 77, duration: 60_000 });
  expect((await lastChange(overrideId, "ratelimit.set_override")).after).toMatchObject({ limit: 77 });
});

test("audit entry of a policy update lists changed members", async () => {
  const apiId = await resources.api();
  const name = resources.name("policy");
  const { policyId } = (await t.data("managed.applyObject", policyBody(apiId, name))).ids;
  await t.data("managed.applyObject", policyBody(apiId, name, { mode: "Audit" }));
  const { before, after } = await lastChange(policyId, "policy.update");
  expect(before).toMatchObject({ generation: 1, mode: "Enforce" });
  expect(after).toMatchObject({ generation: 2, mode: "Audit" });
  expect(Object.keys(after).sort()).toEqual(["generation", "mode"]);
});

test("audit entries of root keys and workspaces contain no hashes", async () => {
  const workspaceId = t.workspace.id;
  await t.rootKey(["api.*.read_api"], { name: "narrow" });
  const { rows } = await t.deps.db.query("select id, hash from root_keys where name = 'narrow'");
  const { id: rootKeyId, hash } = rows[0];
  await changeRootKey(person() as never, { workspaceId, rootKeyId, enabled: false, permissions: ["api.*.read_key"] });
  const change = await lastChange(rootKeyId, "rootKey.update");
  expect(change).toEqual({
    before: { enabled: true, permissions: ["api.*.read_api"] },
    after: { enabled: false, permissions: ["api.*.read_key"] },
  });
  expect(JSON.stringify(change)).not.toContain(hash);
  await changeWorkspace(person() as never, { workspaceId, quotaPerMinute: 5_000 });
  expect(await lastChange(workspaceId, "workspace.update")).toEqual({
    before: { quotaPerMinute: null },
    after: { quotaPerMinute: 5_000 },
  });
  await t.data("admin.updateWorkspace", { workspaceId, name: "renamed" });
  expect(await lastChange(workspaceId, "workspace.update")).toEqual({
    before: { name: workspaceId },
    after: { name: "renamed" },
  });
  await t.data("admin.updateQueryLimits", { querySeconds: 7 });
  expect(await lastChange(workspaceId, "workspace.update")).toEqual({
    before: { timeoutMs: null },
    after: { timeoutMs: 7_000 },
  });
});
