import { createHash, randomBytes } from "node:crypto";
import type { KeyResource, Resources } from "./resources.ts";

/*
 * Finds the request fields that refer to objects of the workspace, by the fields' names in the OpenAPI document. A string field whose name
 * is not listed is an error, so no procedure can be forgotten.
 */

/** Ids and names of one object of every kind, in one workspace. */
export interface OneOfEach {
  readonly key: KeyResource;
  readonly identity: { readonly identityId: string; readonly externalId: string };
  readonly permission: { readonly permissionId: string; readonly slug: string };
  readonly role: { readonly roleId: string; readonly name: string };
  readonly override: {
    readonly namespaceId: string;
    readonly namespace: string;
    readonly identifier: string;
    readonly overrideId: string;
  };
  readonly policy: { readonly policyId: string; readonly apiId: string; readonly name: string };
  readonly rootKey: { readonly rootKeyId: string; readonly rootKey: string; readonly name: string };
  readonly migrationId: string;
  readonly sessionId: string;
  readonly linkId: string;
  /** Managers of other objects, by kind. */
  readonly managers: Readonly<Record<string, string>>;
}

/** Creates related objects: the key has the identity, permission and role; the role has the permission; the key's API has the policy. */
export async function oneOfEach(resources: Resources): Promise<OneOfEach> {
  const identity = await resources.identity();
  const permission = await resources.permission();
  const role = await resources.role([permission.slug]);
  const key = await resources.key({
    externalId: identity.externalId,
    permissions: [permission.slug],
    roles: [role.name],
    ratelimits: [{ name: "requests", limit: 100, duration: 3_600_000 }],
    credits: { remaining: 100, refill: { interval: "daily", amount: 10 } },
  });
  const [override, policy] = [await resources.override(), await resources.policy(key.apiId)];
  const [rootKey, migrationId] = [await resources.rootKey(), await resources.migration()];
  const [sessionId, linkId] = [await resources.session(), await resources.signInLink()];
  const managers = await managersOfEach(resources);
  return { key, identity, permission, role, override, policy, rootKey, migrationId, sessionId, linkId, managers };
}

async function managersOfEach(resources: Resources): Promise<Record<string, string>> {
  return {
    api: await resources.manage("apis", await resources.api()),
    role: await resources.manage("roles", (await resources.role()).roleId),
    permission: await resources.manage("permissions", (await resources.permission()).permissionId),
    namespace: await resources.manage("ratelimit_namespaces", (await resources.namespace()).namespaceId),
    override: await resources.manage("ratelimit_overrides", (await resources.override()).overrideId),
    policy: await resources.manage("policies", (await resources.policy()).policyId),
    key: await resources.manage("keys", (await resources.key()).keyId),
  };
}

/** Returns the distinct values of a field that refer to one of these objects. */
type Names = (each: OneOfEach, body: unknown) => readonly string[];

const OBJECT_IDS: Readonly<Record<string, (each: OneOfEach) => string>> = {
  api: ({ key }) => key.apiId,
  key: ({ key }) => key.keyId,
  role: ({ role }) => role.roleId,
  permission: ({ permission }) => permission.permissionId,
  namespace: ({ override }) => override.namespaceId,
  override: ({ override }) => override.overrideId,
  policy: ({ policy }) => policy.policyId,
};

/** Functions that return the possible values of a field, by field name. */
const REFERENCES: Readonly<Record<string, Names>> = {
  apiId: ({ key }) => [key.apiId],
  keyId: ({ key }) => [key.keyId],
  key: ({ key }) => [key.key],
  plaintext: ({ key }) => [key.key],
  // `hash.value` of an imported key.
  value: ({ key }) => [createHash("sha256").update(key.key).digest("base64")],
  keyHash: ({ key }) => [createHash("sha256").update(key.key).digest("base64")],
  hash: ({ key }) => [createHash("sha256").update(key.key).digest("base64")],
  identity: ({ identity }) => [identity.identityId, identity.externalId],
  identityId: ({ identity }) => [identity.identityId],
  externalId: ({ identity }) => [identity.externalId],
  ownerId: ({ identity }) => [identity.externalId],
  permission: ({ permission }) => [permission.permissionId, permission.slug],
  permissionId: ({ permission }) => [permission.permissionId],
  role: ({ role }) => [role.roleId, role.name],
  roleId: ({ role }) => [role.roleId],
  namespace: ({ override }) => [override.namespaceId, override.namespace],
  namespaceId: ({ override }) => [override.namespaceId],
  namespaceName: ({ override }) => [override.namespace],
  policyId: ({ policy }) => [policy.policyId],
  // Only callers with access to the installation can refer to another workspace, and they have access to every workspace.
  workspaceId: () => [],
  rootKeyId: ({ rootKey }) => [rootKey.rootKeyId],
  migrationId: ({ migrationId }) => [migrationId],
  sessionId: ({ sessionId }) => [sessionId],
  linkId: ({ linkId }) => [linkId],
  cursor: ({ key }) => [key.keyId],
  id: (each, body) => {
    const id = OBJECT_IDS[(body as { kind: string }).kind];
    if (id === undefined)
      throw new Error(`api-server/test/references.ts has no id of the kind in ${JSON.stringify(body)}`);
    return [id(each)];
  },
  manager: ({ managers }, body) => {
    // policies.getPolicy has no `kind` field.
    const { kind = "policy" } = body as { kind?: string };
    const manager = managers[KIND_OF_MANIFEST[kind] ?? kind];
    if (manager === undefined)
      throw new Error(`api-server/test/references.ts has no manager of the kind in ${JSON.stringify(body)}`);
    return [manager];
  },
};

/** Kinds of stored objects, by the kind of the manifest that manages them. */
const KIND_OF_MANIFEST: Readonly<Record<string, string>> = {
  Role: "role",
  RatelimitNamespace: "namespace",
  RatelimitOverride: "override",
  ApiKeyPolicy: "policy",
  ApiKey: "key",
};

/** Functions that return the possible values of a list of strings, by field name. */
const LIST_REFERENCES: Readonly<Record<string, Names>> = {
  ids: (each, body) => REFERENCES.id?.(each, body) ?? [],
  permissions: ({ permission }) => [permission.slug, permission.permissionId],
  roles: ({ role }) => [role.name, role.roleId],
  roleIds: ({ role }) => [role.roleId],
  keyId: ({ key }) => [key.keyId],
};

/** String fields that refer to no object, or only to a part of the object to which another field refers. */
const PLAIN: ReadonlySet<string> = new Set([
  ...["name", "description", "slug", "prefix", "start", "search", "tags", "uid", "identifier"],
  ...["tag", "groupBy"],
  // Settings of an API.
  ...["defaultPrefix", "ipAllowList"],
  // A label for counting usage. It refers to no object, and usage is counted separately in each workspace.
  "keySpaceId",
  // First part of a policy name.
  "cluster",
  // SQL, which has separate tests.
  "query",
  // Managers that are only compared with those of the objects to which a manifest refers.
  "mayReferTo",
  // Permission query, evaluated against the permissions of the key.
  "permissions",
  // All identities have the same environment.
  "environment",
  // Resource type of a v1 limit call.
  "type",
  // Audit log filters. Each workspace has its own audit log, so an id from another workspace matches no row.
  ...["method", "path", "host", "headers", "clientIp"],
  ...["event", "actorId", "targetId", "requestId"],
  // Filter that applies only to the root keys of one workspace.
  "v1UsedSince",
  // Permissions that the caller expects the role to have. They are only compared.
  "expected",
  // Fields of a compiled policy that refer to no object.
  ...["exact", "template", "hosts", "by", "scheme", "trustedProxies"],
]);

export interface Reference {
  /** Path of the field, such as `keyId`, `keys[].roles` or `[].namespace`. */
  readonly field: string;
  readonly isList: boolean;
  readonly values: Names;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

interface Operation {
  readonly requestBody?: { readonly content: Record<string, { schema: Schema }> };
  readonly parameters?: readonly { readonly name: string; readonly schema: Schema }[];
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, { readonly post?: Operation; readonly get?: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Returns the procedure path of a URL, such as `keys.getKey` or `v1/keys.getKey`. */
const pathAt = (url: string): string =>
  url
    .replace(/^\/(?:v2\/)?/, "")
    .replaceAll("{", ":")
    .replaceAll("}", "");

/** Returns the input schema of an operation: its body or an object of its parameters; `undefined` without input. */
function inputOf({ requestBody, parameters }: Operation): Schema | undefined {
  if (requestBody !== undefined) return requestBody.content["application/json"]?.schema;
  return parameters && { properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])) };
}

/** Returns the fields that refer to objects, by procedure path such as `keys.getKey`. Throws for a string field with an unknown name. */
export function findReferences({ paths, components }: OpenApi): Map<string, readonly Reference[]> {
  const byPath = new Map<string, readonly Reference[]>();
  for (const [url, { post, get }] of Object.entries(paths)) {
    const schema = inputOf(post ?? get ?? {});
    if (schema === undefined) continue;
    const path = pathAt(url);
    const found = walk(schema, { path, name: "", at: "" });
    byPath.set(path, [...new Map(found.map((one) => [one.field, one])).values()]);
  }
  return byPath;

  function walk(node: Schema, where: Where): Reference[] {
    const { name, at } = where;
    if (node.$ref !== undefined) return walk(components.schemas[node.$ref.split("/").at(-1) ?? ""] ?? {}, where);
    const alternatives = node.anyOf ?? node.oneOf;
    if (alternatives !== undefined) return alternatives.flatMap((one) => walk(one, where));
    if (node.properties !== undefined) {
      return Object.entries(node.properties).flatMap(([member, one]) =>
        walk(one, { ...where, name: member, at: at === "" ? member : `${at}.${member}` }),
      );
    }
    if (node.items === undefined) return isText(node) ? leaf(REFERENCES, where, false) : [];
    if (isText(resolve(node.items))) return leaf(LIST_REFERENCES, where, true);
    return walk(node.items, { ...where, name, at: `${at}[]` });
  }

  function resolve(node: Schema): Schema {
    return node.$ref === undefined ? node : (components.schemas[node.$ref.split("/").at(-1) ?? ""] ?? {});
  }
}

interface Where {
  readonly path: string;
  readonly name: string;
  readonly at: string;
}

const isText = ({ type, enum: values, const: value }: Schema): boolean =>
  [type].flat().includes("string") && values === undefined && value === undefined;

/** Functions that return the possible values of a field, by full field path, for fields whose name alone is ambiguous. */
const BY_PLACE: Readonly<Record<string, Names>> = {
  "permissions[].id": ({ permission }) => [permission.permissionId],
  "permissions[].slug": ({ permission }) => [permission.slug],
  "permissions[].name": ({ permission }) => [permission.slug],
  "roles[].id": ({ role }) => [role.roleId],
  "roles[].name": ({ role }) => [role.name],
};

/** String fields that refer to no object, by field path, or by procedure and field path. */
const PLAIN_PLACES: ReadonlySet<string> = new Set([
  "resources[].id",
  // A header of the request to be explained.
  ...["headers[].name", "headers[].value"],
  // Permissions of a root key. Ids in them are not looked up.
  "admin.createRootKey permissions",
  "admin.updateRootKey permissions",
]);

function leaf(known: Readonly<Record<string, Names>>, { path, name, at }: Where, isList: boolean): Reference[] {
  if (PLAIN_PLACES.has(at) || PLAIN_PLACES.has(`${path} ${at}`)) return [];
  const ofPlace = BY_PLACE[at];
  if (ofPlace !== undefined) return [{ field: at, isList, values: ofPlace }];
  const values = known[name];
  if (values !== undefined) return [{ field: at, isList, values }];
  if (PLAIN.has(name)) return [];
  throw new Error(
    `${path} takes ${at}, and it is not known whether this field names an object: list ${name} in api-server/test/references.ts`,
  );
}

/** Splits a field path into the last step and the steps before it, which lead to the containing object. */
function stepsOf(field: string): { steps: readonly string[]; last: string } {
  const steps = field.split(/\.|(?=\[\])/).map((step) => (step === "[]" ? "0" : step));
  return { steps: steps.slice(0, -1), last: steps.at(-1) ?? "" };
}

/** Returns the object that contains the field, or `undefined` if the body lacks it. */
function holderOf(body: unknown, field: string): Record<string, unknown> | undefined {
  let at = body as Record<string, unknown> | undefined;
  for (const step of stepsOf(field).steps) at = at?.[step] as typeof at;
  return typeof at === "object" ? at : undefined;
}

export const valueIn = (body: unknown, { field }: Reference): unknown => holderOf(body, field)?.[stepsOf(field).last];

/**
 * Returns a copy of the body with another value in the field and in all fields that must have the same value. Throws if the body lacks the
 * containing object.
 */
export function withValue(body: unknown, reference: Reference, value: string): unknown {
  const { field, isList } = reference;
  const before = valueIn(body, reference);
  const copy =
    typeof before === "string"
      ? JSON.parse(JSON.stringify(body), (_name, one) => (one === before ? value : one))
      : structuredClone(body);
  const holder = holderOf(copy, field);
  if (holder === undefined) {
    throw new Error(`no sample call has what ${field} is in: add one to api-server/test/sample-calls.ts`);
  }
  holder[stepsOf(field).last] = isList ? [value] : value;
  return copy;
}

/** Returns a value of the same format that refers to no object in any workspace. */
export const absent = (value: string): string =>
  `${value.slice(0, value.endsWith("=") ? -9 : -8)}${ABSENT}${value.endsWith("=") ? "=" : ""}`;
const ABSENT = randomBytes(4).toString("hex");
