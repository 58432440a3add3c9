import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp, type Workspace } from "./app.ts";
import { dumpWorkspace } from "./dump-workspace.ts";
import { dataOf, everyProcedure, everyReference, isSuccess, sampleCallsOf } from "./every-procedure.ts";
import {
  absent,
  findReferences,
  type OneOfEach,
  type OpenApi,
  oneOfEach,
  type Reference,
  valueIn,
  withValue,
} from "./references.ts";
import { makeResources, OVERRIDDEN_LIMIT, type Resources } from "./resources.ts";
import type { MakeCall } from "./sample-calls.ts";

/*
 * A root key of another workspace with every permission calls every procedure with the names of this workspace's objects. The cases are
 * generated from the procedure schemas, so that new procedures are included automatically.
 */

let t: TestApp;
let theirs: OneOfEach;
let rowsBefore: string;
beforeAll(async () => {
  t = await buildTestApp();
  theirs = await oneOfEach(resourcesOf(t.workspace));
  rowsBefore = await dumpWorkspace(t.deps.db, t.workspace.id);
});
afterAll(() => t.close());

const HOUR_MS = 3_600_000;

const resourcesOf = ({ id, rootKey }: Workspace): Resources =>
  makeResources(t.deps.db, { workspaceId: id, ask: (path, body) => t.data(path, body, { rootKey }) });

interface ForeignWorkspace {
  readonly id: string;
  readonly own: Resources;
  call(path: string, body: unknown): Promise<Reply>;
}

/** Creates a new, empty workspace for each call, so that calls do not affect each other. */
async function newForeignWorkspace(): Promise<ForeignWorkspace> {
  const workspace = await t.makeWorkspace();
  const { id, rootKey } = workspace;
  return { id, own: resourcesOf(workspace), call: (path, body) => t.call(path, body, { rootKey }) };
}

/**
 * Fields in which a foreign name is not 404, with the reason. The response then equals that for a missing name, unless stated otherwise.
 */
const NOT_404: Readonly<Record<string, string>> = {
  "keys.createKey externalId": "an identity is made",
  "keys.createKey permissions": "permissions are made",
  "keys.updateKey externalId": "an identity is made",
  "keys.updateKey permissions": "permissions are made",
  "keys.addPermissions permissions": "permissions are made",
  "keys.setPermissions permissions": "permissions are made",
  "keys.migrateKeys keys[].externalId": "an identity is made",
  "keys.migrateKeys keys[].permissions": "permissions are made",
  "keys.migrateKeys keys[].roles": "roles are made",
  "keys.migrateKeys keys[].hash": "DIFFERS: a key has one owner, so its hash counts as failed wherever it is",
  "keys.verifyKey key": "NOT_FOUND is an outcome",
  "keys.explainVerification key": "NOT_FOUND is an outcome",
  "admin.explainVerification keyHash": "NOT_FOUND is an outcome",
  "keys.verifyKey migrationId": "NOT_FOUND is an outcome",
  "identities.createIdentity externalId": "each workspace has its own",
  "permissions.createRole permissions": "permissions are made",
  "permissions.setRolePermissions permissions": "permissions are made",
  "ratelimit.limit namespace": "a namespace is made",
  "v1/ratelimits.limit namespace": "a namespace is made",
  ...Object.fromEntries(
    ["permissions[].id", "permissions[].slug", "permissions[].name"].map((field) => [
      `v1/keys.removePermissions ${field}`,
      "what is missing is ignored",
    ]),
  ),
  "v1/keys.createKey externalId": "an identity is made",
  "v1/keys.createKey ownerId": "an identity is made",
  "v1/keys.createKey roles": "roles are made",
  "v1/keys.createKey permissions": "permissions are made",
  "v1/keys.updateKey externalId": "an identity is made",
  "v1/keys.updateKey ownerId": "an identity is made",
  "v1/keys.updateKey roles[].name": "roles are made",
  "v1/keys.updateKey permissions[].name": "permissions are made",
  "v1/migrations.createKeys [].plaintext": "DIFFERS: a key has one owner, so its hash is taken wherever it is",
  "v1/migrations.createKeys [].hash.value": "DIFFERS: a key has one owner, so its hash is taken wherever it is",
  "v1/migrations.createKeys [].externalId": "an identity is made",
  "v1/migrations.createKeys [].ownerId": "an identity is made",
  "v1/migrations.createKeys [].roles": "what is missing is 412",
  "v1/migrations.createKeys [].permissions": "what is missing is 412",
  "v1/migrations.enqueueKeys migrationId": "names nothing",
  ...Object.fromEntries(
    ["plaintext", "hash.value", "ownerId", "roles", "permissions"].map((field) => [
      `v1/migrations.enqueueKeys keys[].${field}`,
      "accepted, and looked up later",
    ]),
  ),
  "v1/keys.addPermissions permissions[].name": "permissions are made",
  "v1/keys.setPermissions permissions[].name": "permissions are made",
  "v1/keys.addRoles roles[].name": "roles are made",
  "v1/keys.setRoles roles[].name": "roles are made",
  "v1/keys.removeRoles roles[].id": "what is missing is ignored",
  "v1/keys.removeRoles roles[].name": "what is missing is ignored",
  "v1/apis.listKeys externalId": "an unknown externalId has no keys",
  "v1/apis.listKeys ownerId": "an unknown owner has no keys",
  "v1/apis/:apiId/keys ownerId": "an unknown owner has no keys",
  "v1/keys ownerId": "the owner is stored as it is, and names nothing",
  "v1/identities.createIdentity externalId": "each workspace has its own",
  "ratelimit.multiLimit [].namespace": "a namespace is made",
  "v1/analytics.getVerifications keyId": "an unknown key was never used",
  "apis.listKeys externalId": "an unknown externalId has no keys",
  "admin.getLatencies keyId": "an unknown key was never used",
  "admin.getLatencies externalId": "an unknown owner used no key",
  "admin.resolveNames ids": "an unknown id has no name",
  "managed.applyObject manager": "each workspace has its own",
  "managed.applyObject secret.keyId": "a key that is not the manifest's is not in use",
  "managed.deleteObject manager": "an unknown manager has no objects",
  "admin.listPermissions roleIds": "an unknown role grants nothing",
  ...Object.fromEntries(
    ["keyId", "hash", "externalId", "role", "permission"].map((field) => [
      `admin.searchKeys ${field}`,
      "nothing is found",
    ]),
  ),
  "admin.disableKeysOfOwner externalId": "an unknown owner has no keys",
};

const referencesByPath = everyReference();
// Procedures without a root key: the key in the call determines its workspace.
const withoutRootKey = new Set(everyProcedure.filter(({ isOpen }) => isOpen).map(({ path }) => path));
// Procedures across workspaces, which are denied to a root key with all permissions of one workspace.
const ofInstallation = new Set(
  everyProcedure
    .filter(({ permissions }) => permissions.some(({ type }) => type === "installation"))
    .map(({ path }) => path),
);
const paths = [...referencesByPath.keys()].filter((path) => !withoutRootKey.has(path) && !ofInstallation.has(path));

test.each([...ofInstallation])("installation procedure %s is denied to an admin of one workspace", async (path) => {
  const { own, call } = await newForeignWorkspace();
  const reply = await call(path, (await sampleCallsOf(path).always(own)).body);
  expect(reply.status, JSON.stringify(reply.body)).toBe(403);
  expect(reply.body.error.detail).toContain("installation.*.");
});

describe.each(paths)("%s", (path) => {
  const makers = Object.entries(sampleCallsOf(path)).map(([circumstance, makeCall]) => ({ circumstance, makeCall }));

  test.each(makers)("procedure returns only objects of the caller's workspace: $circumstance", async ({ makeCall }) => {
    const { own, call } = await newForeignWorkspace();
    const reply = await call(path, (await makeCall(own)).body);
    expect(isSuccess(reply), JSON.stringify(reply.body)).toBe(true);
    expectNoLeak(reply);
  });

  // A cursor is only a lower bound; separate tests below cover it.
  const cases = (referencesByPath.get(path) ?? []).filter(({ field }) => field !== "cursor");
  if (cases.length === 0) return;
  test.each(cases)("$field of another workspace is treated like a missing $field", async (reference) => {
    const exception = NOT_404[`${path} ${reference.field}`];
    for (const makeCall of await makersWith(path, reference)) {
      const tryWith = async (change: (value: string) => string): Promise<Tried[]> => {
        const tried: Tried[] = [];
        const { body: example } = await makeCall((await newForeignWorkspace()).own);
        for (const [index] of reference.values(theirs, example).entries()) {
          const { own, call } = await newForeignWorkspace();
          const { body } = await makeCall(own);
          const name = change(reference.values(theirs, body)[index] ?? "");
          tried.push({ name, reply: await call(path, withValue(body, reference, name)) });
        }
        return tried;
      };
      const [foreign, missing] = [await tryWith((value) => value), await tryWith(absent)];
      for (const [index, { name, reply }] of foreign.entries()) {
        expectNoLeak(reply, name);
        if (exception === undefined) expect(reply.status, JSON.stringify(reply.body)).toBe(404);
        else expect(reply.status, `${exception}: ${JSON.stringify(reply.body)}`).not.toBe(404);
        if (exception?.startsWith("DIFFERS") !== true)
          expect(shapeOf(path, { name, reply })).toEqual(shapeOf(path, missing[index]));
      }
    }
  });

  test.each(makers)(
    "call with names of another workspace in all fields finds nothing: $circumstance",
    async ({ makeCall }) => {
      const { own, call } = await newForeignWorkspace();
      let { body } = await makeCall(own);
      const present = cases.filter((one) => valueIn(body, one) !== undefined);
      for (const reference of present) body = withValue(body, reference, reference.values(theirs, body)[0] ?? "");
      const sent = withTheirWords(body);
      const reply = await call(path, sent);
      expectNoLeak(reply, sent);
      if (present.every(({ field }) => `${path} ${field}` in NOT_404)) expect(isSuccess(reply)).toBe(true);
      else expect(reply.status).toBe(404);
    },
  );
});

/** Returns the body with names of the other workspace in fields that are looked up within another object. */
function withTheirWords(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withTheirWords);
  const words = { name: theirs.policy.name, identifier: theirs.override.identifier };
  const own = Object.entries(body as object);
  return Object.fromEntries(own.map(([name, value]) => [name, name in words ? words[name as "name"] : value]));
}

interface Tried {
  readonly name: string;
  readonly reply: Reply;
}

/** Returns the sample calls with the field, or else the ordinary call with the field added. */
async function makersWith(path: string, reference: Reference): Promise<MakeCall[]> {
  const { own } = await newForeignWorkspace();
  const makers = Object.values(sampleCallsOf(path));
  const bodies = await Promise.all(makers.map(async (makeCall) => (await makeCall(own)).body));
  const having = makers.filter((_, index) => valueIn(bodies[index], reference) !== undefined);
  return having.length > 0 ? having : [sampleCallsOf(path).always];
}

/** Returns the response without random ids, secrets and the requested name. */
const shapeOf = (path: string, tried: Tried | undefined): unknown => [
  tried?.reply.status,
  JSON.stringify(tried && (tried.reply.body.error ?? dataOf(path, tried.reply)))
    .replaceAll(tried?.name ?? "", "<name>")
    .replaceAll(/"[a-z]+_[A-Za-z0-9]{16}"/g, '"<id>"')
    .replaceAll(/[a-z]+_(?:[0-9a-f]{32}|[0-9a-f]{12})/g, "<text>")
    .replaceAll(/"[0-9a-f]{64}"/g, '"<digest>"')
    .replaceAll(/"(key|hash|reset|now|stalenessMs|ageMs|createdAt|requestId)":("[^"]+"|\d+)/g, '"$1":"<new>"'),
];

/** Asserts that the response contains nothing of the other workspace except the content of the request. */
function expectNoLeak({ body }: Reply, sent: unknown = ""): void {
  const [text, known] = [JSON.stringify(body), JSON.stringify(sent)];
  for (const value of textsIn(theirs)) if (!known.includes(value)) expect(text).not.toContain(value);
}

const textsIn = (one: unknown): string[] =>
  typeof one === "string" ? [one] : Object.values(one as object).flatMap((member) => textsIn(member));

test("every tenancy exception names an existing procedure and field", () => {
  const fields = [...referencesByPath].flatMap(([path, references]) =>
    references.map(({ field }) => `${path} ${field}`),
  );
  expect(Object.keys(NOT_404).filter((one) => !fields.includes(one))).toEqual([]);
});

test("tenancy tests fail with instructions if a string field is not listed in them", () => {
  const schema = { type: "object", properties: { invoiceId: { type: "string" } } };
  const post = { requestBody: { content: { "application/json": { schema } } } };
  const document = { paths: { "/v2/bills.getBill": { post } }, components: { schemas: {} } };
  expect(() => findReferences(document)).toThrow(
    "bills.getBill takes invoiceId, and it is not known whether this field names an object: list invoiceId in api-server/test/references.ts",
  );
});

test("tenancy tests cover every procedure documented for customers", async () => {
  const documents = await Promise.all(["/openapi.json", "/v1/openapi.json"].map((url) => t.app.inject({ url })));
  const read = documents.flatMap((served) => [...findReferences(served.json() as OpenApi).keys()]);
  expect(read.filter((path) => !withoutRootKey.has(path) && !ofInstallation.has(path))).toEqual(paths);
  expect(read.toSorted()).toEqual(everyProcedure.map(({ path }) => path).toSorted());
});

/** Lists ordered by name, whose cursor is a name. */
const BY_NAME: ReadonlySet<string> = new Set([
  "admin.listRoles",
  "admin.listPermissions",
  "admin.listNamespaces",
  "admin.listOverrides",
  // Ordered newest first: an invalid cursor starts at the beginning.
  "admin.searchKeys",
  // As above; the cursor is a name with the person's provider.
  "admin.listPeople",
]);

const withCursor = paths.filter((path) => referencesByPath.get(path)?.some(({ field }) => field === "cursor"));
test.each(withCursor)(
  "%s with a cursor of another workspace lists only objects of the caller's workspace",
  async (path) => {
    const { own, call } = await newForeignWorkspace();
    const bodies: unknown[] = [];
    for (const makeCall of [...Array(3)].map(() => sampleCallsOf(path).always)) bodies.push((await makeCall(own)).body);
    const body = bodies[0] as object;
    const idsOf = (reply: Reply): string[] => itemsOf(dataOf(path, reply)).map((item) => Object.values(item)[0]);
    const all = idsOf(await call(path, body));
    for (const cursor of ["", "!", ...textsIn(theirs)]) {
      const reply = await call(path, { ...body, cursor });
      expect(reply.status).toBe(200);
      expectNoLeak(reply, cursor);
      const ids = idsOf(reply);
      expect(ids).toEqual(BY_NAME.has(path) ? all.slice(all.length - ids.length) : all.filter((id) => id >= cursor));
    }
  },
);

/** Returns the items of a list; in v1 they are a member of the response. */
const itemsOf = (data: object): object[] =>
  (Array.isArray(data) ? data : Object.values(data).find(Array.isArray)) as object[];

test("externalIds, slugs and names that another workspace uses can be used again", async () => {
  const { id, own, call } = await newForeignWorkspace();
  const { externalId, identityId } = theirs.identity;
  const { slug, permissionId } = theirs.permission;
  const { keyId } = await own.key({ externalId, permissions: [slug] });
  const { identity } = (await call("keys.getKey", { keyId })).body.data;
  expect(identity).toMatchObject({ externalId });
  expect(identity.id).not.toBe(identityId);
  const text = "select id from permissions where workspace_id = $1 and slug = $2";
  const { rows } = await t.deps.db.query<{ id: string }>(text, [id, slug]);
  expect(rows).toHaveLength(1);
  expect(rows[0]?.id).not.toBe(permissionId);
  expect((await call("permissions.createRole", { name: theirs.role.name })).status).toBe(200);
  expect((await call("ratelimit.createNamespace", { name: theirs.override.namespace })).status).toBe(200);
});

test("overrides and counters of another workspace's namespace with the same name do not apply", async () => {
  const { call } = await newForeignWorkspace();
  const { namespace, namespaceId, identifier } = theirs.override;
  const body = { namespace, identifier, limit: 1, duration: HOUR_MS };
  expect((await call("ratelimit.limit", body)).body.data).toEqual({
    success: true,
    limit: 1,
    remaining: 0,
    reset: expect.any(Number),
  });
  expect((await t.data("ratelimit.limit", body)).remaining).toBe(OVERRIDDEN_LIMIT - 1);
  // The namespace is a different one, even if its name equals a foreign id.
  await call("ratelimit.limit", { ...body, namespace: namespaceId });
  for (const name of [namespace, namespaceId]) {
    const { data } = (await call("ratelimit.getNamespace", { namespace: name })).body;
    expect(data).toMatchObject({ name });
    expect(data.id).not.toBe(namespaceId);
  }
});

test("manager name is scoped to one workspace", async () => {
  const headers = { "postern-manager": "main/Role/shop/editor" };
  const create = (name: string, rootKey: string) => t.data("permissions.createRole", { name }, { rootKey, headers });
  const [one, other] = [await t.makeWorkspace(), await t.makeWorkspace()];
  const first = await create("editor", one.rootKey);
  const second = await create("editor", other.rootKey);
  expect(second.roleId).not.toBe(first.roleId);
  const getObject = (id: string, rootKey: string) => t.call("managed.getObject", { kind: "role", id }, { rootKey });
  expect((await getObject(first.roleId, other.rootKey)).status).toBe(404);
  const foreign = await t.call("permissions.deleteRole", { role: first.roleId }, { rootKey: other.rootKey });
  // A 409 would reveal that a foreign object exists and is managed.
  expect(foreign.status).toBe(404);
});

test("key of another workspace is accepted neither as a key nor as a root key", async () => {
  const { own, call } = await newForeignWorkspace();
  const { key } = theirs.key;
  expect((await call("keys.verifyKey", { key })).body.data).toEqual({ valid: false, code: "NOT_FOUND" });
  expect((await call("keys.verifyKey", { key: t.workspace.rootKey })).body.data.code).toBe("NOT_FOUND");
  expect((await t.call("keys.verifyKey", { key }, { rootKey: key })).status).toBe(401);
  const [apiId, migrationId] = [await own.api(), await own.migration()];
  const hash = createHash("sha256").update(key).digest("base64");
  const migrated = await call("keys.migrateKeys", { apiId, migrationId, keys: [{ hash }] });
  expect(migrated.body.data).toEqual({ migrated: [], failed: [hash] });
});

test("listing by an externalId that exists in another workspace returns only keys of the caller's workspace", async () => {
  const { own, call } = await newForeignWorkspace();
  const { externalId } = theirs.identity;
  const apiId = await own.api();
  expect((await call("apis.listKeys", { apiId, externalId })).body.data).toEqual([]);
  const { keyId } = await own.key({ apiId, externalId });
  expect((await call("apis.listKeys", { apiId, externalId })).body.data).toMatchObject([{ keyId }]);
});

test("tenancy tests leave the other workspace unchanged", async () => {
  expect(await dumpWorkspace(t.deps.db, t.workspace.id)).toBe(rowsBefore);
  expect((await t.data("keys.verifyKey", { key: theirs.key.key })).code).toBe("VALID");
});
