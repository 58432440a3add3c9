import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp, type Workspace } from "./app.ts";
import { dumpWorkspace } from "./dump-workspace.ts";
import { everyProcedure, everyReference, sampleCallsOf } from "./every-procedure.ts";
import { type PersonAtPage, signIn } from "./people.ts";
import { type OneOfEach, oneOfEach, valueIn, withValue } from "./references.ts";
import { makeResources, type Resources } from "./resources.ts";

/*
 * Two workspaces that are nearly identical: each has the other's id as its name, and their objects have equal names. Callers of one
 * workspace call every administrative procedure.
 */

let t: TestApp;
let ours: Workspace;
let theirs: OneOfEach;
let theirId: string;
/** Ids and secrets of the other workspace; names are equal in both. */
let theirWords: readonly string[];
let before: string;
let callers: Readonly<Record<string, (path: string, body: unknown) => Promise<Reply>>>;
let person: PersonAtPage;

const resourcesOf = ({ id, rootKey }: Workspace): Resources =>
  makeResources(t.deps.db, { workspaceId: id, ask: (path, body) => t.data(path, body, { rootKey }) });

const wordsIn = (one: unknown): string[] =>
  typeof one === "string" ? [one] : Object.values(one as object).flatMap(wordsIn);

beforeAll(async () => {
  t = await buildTestApp();
  ours = await t.makeWorkspace();
  const them = await t.makeWorkspace();
  theirId = them.id;
  theirs = await oneOfEach(resourcesOf(them));
  const own = await oneOfEach(resourcesOf(ours));
  const { db } = t.deps;
  await db.query("update workspaces set name = id || '_' where id = any($1)", [[ours.id, theirId]]);
  await db.query("update workspaces set name = case id when $1 then $2 else $1 end where id in ($1, $2)", [
    ours.id,
    theirId,
  ]);
  const sameName = (table: string, column: string, id: string, name: string) =>
    db.query(`update ${table} set ${column} = $2 where id = $1 and workspace_id = $3`, [id, name, ours.id]);
  await db.query("update apis set name = 'alike' where id = any($1)", [[own.key.apiId, theirs.key.apiId]]);
  await db.query("update keys set name = 'alike' where id = any($1)", [[own.key.keyId, theirs.key.keyId]]);
  await sameName("roles", "name", own.role.roleId, theirs.role.name);
  await sameName("permissions", "slug", own.permission.permissionId, theirs.permission.slug);
  await sameName("identities", "external_id", own.identity.identityId, theirs.identity.externalId);
  await sameName("ratelimit_namespaces", "name", own.override.namespaceId, theirs.override.namespace);
  await sameName("policies", "name", own.policy.policyId, theirs.policy.name);
  await sameName("root_keys", "name", own.rootKey.rootKeyId, theirs.rootKey.name);
  t.deps.projection.forgetAll();
  const shared = [
    ...[theirs.role.name, theirs.permission.slug, theirs.identity.externalId, theirs.override.namespace],
    ...[theirs.policy.name, theirs.rootKey.name],
  ];
  theirWords = wordsIn(theirs).filter((word) => !shared.includes(word));
  before = await dumpWorkspace(db, theirId);

  person = await signIn(t, { workspaceId: ours.id, role: "admin" });
  // The ids in root key permissions are not checked, so a root key may hold permissions with foreign ids.
  const namingTheirs = [...new Set(everyProcedure.flatMap(({ permissions }) => permissions))].flatMap(
    ({ type, action, orFor }) => {
      if (type === "installation") return [];
      if (orFor === undefined) return [`${type}.*.${action}`];
      const ids = [theirs.key.apiId, theirs.override.namespaceId, theirs.identity.identityId];
      return ids.map((id) => `${type}.${id}.${action}`);
    },
  );
  const narrow = await t.rootKey(namingTheirs, { workspaceId: ours.id });
  callers = {
    "a person who is admin here": (path, body) => person.call(path, body, { "postern-workspace": ours.id }),
    "a root key with all of this workspace": (path, body) => t.call(path, body, { rootKey: ours.rootKey }),
    "a root key with tuples that name their ids": (path, body) => t.call(path, body, { rootKey: narrow }),
  };
});
afterAll(() => t.close());

/** A response may repeat the request and the permissions of an own root key that names foreign ids. */
function expectNoForeignData({ body }: Reply, sent: unknown): void {
  const text = JSON.stringify(body).replaceAll(/"(?:api|ratelimit|identity)\.\w+\.\w+"/g, '""');
  const known = JSON.stringify(sent);
  for (const word of theirWords) if (!known.includes(word)) expect(text).not.toContain(word);
}

const references = everyReference();
const ofAdmins = everyProcedure.filter(({ path }) => path.startsWith("admin."));

describe.each([
  "a person who is admin here",
  "a root key with all of this workspace",
  "a root key with tuples that name their ids",
])("%s", (caller) => {
  test.each(ofAdmins)(
    "caller cannot see or change another workspace's objects with $path",
    async ({ path, permissions }) => {
      const call = callers[caller] as (path: string, body: unknown) => Promise<Reply>;
      for (const makeCall of Object.values(sampleCallsOf(path))) {
        const { body } = await makeCall(resourcesOf(ours));
        const plain = await call(path, body);
        expectNoForeignData(plain, body);
        if (permissions.some(({ type }) => type === "installation")) expect(plain.status).toBe(403);
        let naming = body;
        for (const reference of references.get(path) ?? []) {
          const [value] = reference.values(theirs, body);
          if (value !== undefined && valueIn(body, reference) !== undefined)
            naming = withValue(naming, reference, value);
        }
        const reply = await call(path, naming);
        expectNoForeignData(reply, naming);
      }
      expect(await dumpWorkspace(t.deps.db, theirId)).toBe(before);
    },
  );
});

test("usage totals of a workspace exclude other workspaces", async () => {
  const counts = async () => {
    const ask = (path: string, body: object = {}) => t.data(`admin.${path}`, body, { rootKey: ours.rootKey });
    return {
      apis: await ask("listApis", { limit: 100 }),
      keys: await ask("searchKeys", { limit: 100 }),
      ofOwner: await ask("searchKeys", { externalId: theirs.identity.externalId }),
      ofRole: await ask("searchKeys", { role: theirs.role.name }),
      ofPermission: await ask("searchKeys", { permission: theirs.permission.slug }),
      owner: await ask("disableKeysOfOwner", { externalId: theirs.identity.externalId, enabled: false, dryRun: true }),
      roles: await ask("listRoles", { limit: 100 }),
      permissions: await ask("listPermissions", { limit: 100 }),
      namespaces: await ask("listNamespaces", { limit: 100 }),
      identity: (await ask("getIdentityDetails", { identity: theirs.identity.externalId })).keyCount,
      rootKeys: await ask("listRootKeys", { limit: 100 }),
    };
  };
  const one = await counts();
  await t.rootKey(["api.*.create_key"], { workspaceId: theirId, name: theirs.rootKey.name });
  await t.deps.db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, name, identity_id, created_at)
     select 'key_more' || i, $1, $2, 'more' || i, 'prod', 'more', $3, 1 from generate_series(1, 5) as i`,
    [theirId, theirs.key.apiId, theirs.identity.identityId],
  );
  await t.deps.db.query(
    `insert into key_roles (key_id, role_id, workspace_id) select 'key_more' || i, $2, $1 from generate_series(1, 5) as i`,
    [theirId, theirs.role.roleId],
  );
  expect(await counts()).toEqual(one);
  before = await dumpWorkspace(t.deps.db, theirId);
});

describe("the header Postern-Workspace", () => {
  let other: PersonAtPage;
  beforeEach(async () => {
    other = await signIn(t, { workspaceId: theirId, role: "viewer" });
  });

  test("Postern-Workspace selects the workspace with this id rather than one with this name", async () => {
    const at = async (who: PersonAtPage, workspace: string) =>
      (await who.call("workspaces.getWorkspace", {}, { "postern-workspace": workspace })).body;
    expect((await at(person, ours.id)).data.id).toBe(ours.id);
    expect((await at(other, theirId)).data.id).toBe(theirId);
    expect((await at(person, theirId)).error.type).toContain("no_role");
    expect((await at(other, ours.id)).error.type).toContain("no_role");
  });
});
