import { A_LIMIT, type MakeCall, nothing, ofApi, ofEncryptingApi, ofKey, type SampleCalls } from "./sample-calls.ts";
import type { Things } from "./things.ts";

/*
 * Calls of every procedure of v1 that succeed, as `sample-calls.ts` has them for v2. What the body holds is sent as a query where the
 * procedure is a GET.
 */

/** v1 names an identity and a namespace by one of two fields. */
const ofIdentity = (rest: object = {}) => ({
  always: async (things: Things) => {
    const { identityId } = await things.identity();
    return { body: { identityId, ...rest }, identityId };
  },
  byExternalId: async (things: Things) => {
    const { identityId, externalId } = await things.identity();
    return { body: { externalId, ...rest }, identityId };
  },
});

const ofNamespace = (rest: object) => ({
  always: async (things: Things) => {
    const { namespaceId } = await things.namespace();
    return { body: { namespaceId, ...rest }, namespaceId };
  },
  byName: async (things: Things) => {
    const { namespaceId, namespace } = await things.namespace();
    return { body: { namespaceName: namespace, ...rest }, namespaceId };
  },
});

const OF_OVERRIDE = {
  always: async (things: Things) => {
    const { namespaceId, identifier } = await things.override();
    return { body: { namespaceId, identifier }, namespaceId };
  },
  byName: async (things: Things) => {
    const { namespaceId, namespace, identifier } = await things.override();
    return { body: { namespaceName: namespace, identifier }, namespaceId };
  },
};

const ofPermission: MakeCall = async (things) => ({
  body: { permissionId: (await things.permission()).permissionId },
});
const ofRole: MakeCall = async (things) => ({ body: { roleId: (await things.role()).roleId } });

type LinkNoun = "permissions" | "roles";

const newEnd = async (things: Things, noun: LinkNoun) => {
  if (noun === "permissions") {
    const { permissionId, slug } = await things.permission();
    return { id: permissionId, name: slug };
  }
  const { roleId, name } = await things.role();
  return { id: roleId, name };
};

const linkCall = async (things: Things, noun: LinkNoun, item: object, key: Parameters<Things["key"]>[0] = {}) => ({
  body: { keyId: (await things.key(key)).keyId, [noun]: [item] },
});

/** Connects a permission or a role with a key. Permissions are named by a slug where that field exists. */
const connecting = (noun: LinkNoun, { bySlug = false } = {}) => ({
  always: async (things: Things) => linkCall(things, noun, { id: (await newEnd(things, noun)).id }),
  ...(bySlug
    ? { bySlug: async (things: Things) => linkCall(things, noun, { slug: (await newEnd(things, noun)).name }) }
    : {}),
  [noun === "roles" ? "newRole" : "newSlug"]: (things: Things) =>
    linkCall(things, noun, { name: things.name("new"), create: true }),
});

/** Disconnects what the key has. */
const disconnecting = (noun: LinkNoun) => ({
  always: async (things: Things) => {
    const { id, name } = await newEnd(things, noun);
    return linkCall(things, noun, { id }, { [noun]: [name] });
  },
  byName: async (things: Things) => {
    const { name } = await newEnd(things, noun);
    return linkCall(things, noun, { name }, { [noun]: [name] });
  },
});

export const V1_SAMPLE_CALLS: SampleCalls = {
  "v1/liveness": { always: async () => ({ body: {} }) },

  // apis
  "v1/apis.createApi": { always: async (things) => ({ body: { name: things.name("api") } }) },
  "v1/apis.getApi": { always: ofApi() },
  "v1/apis.listKeys": {
    always: async (things) => {
      const { apiId } = await things.key();
      return { body: { apiId }, apiId };
    },
    decrypt: async (things) => {
      const apiId = await things.encryptingApi();
      await things.key({ apiId, recoverable: true });
      return { body: { apiId, decrypt: true }, apiId };
    },
  },
  "v1/apis.deleteApi": { always: ofApi() },
  "v1/apis.deleteKeys": {
    always: async (things) => {
      const { apiId } = await things.key();
      return { body: { apiId }, apiId };
    },
  },

  // keys
  "v1/keys.createKey": {
    always: ofApi((things) => ({ ownerId: things.name("owner"), externalId: things.name("owner") })),
    recoverable: async (things) => {
      const apiId = await things.encryptingApi();
      return { body: { apiId, recoverable: true }, apiId };
    },
    newRole: ofApi((things) => ({ roles: [things.name("role")] })),
    newSlug: ofApi((things) => ({ permissions: [things.name("slug")] })),
  },
  "v1/keys.getKey": {
    always: ofKey(),
    decrypt: ofEncryptingApi({ decrypt: true }, { recoverable: true }),
  },
  "v1/keys.whoami": {
    always: async (things) => {
      const { apiId, key } = await things.key();
      return { body: { key }, apiId };
    },
  },
  "v1/keys.updateKey": {
    always: ofKey((things) => ({ ownerId: things.name("owner"), externalId: things.name("owner") })),
    roles: ofKey(async (things) => ({ roles: [{ id: (await things.role()).roleId }] })),
    newRole: ofKey((things) => ({ roles: [{ name: things.name("role"), create: true }] })),
    permissions: ofKey(async (things) => ({ permissions: [{ id: (await things.permission()).permissionId }] })),
    newSlug: ofKey((things) => ({ permissions: [{ name: things.name("slug"), create: true }] })),
  },
  "v1/keys.updateRemaining": {
    always: ofKey(() => ({ op: "set", value: 5 })),
  },
  "v1/keys.deleteKey": { always: ofKey() },
  "v1/keys.verifyKey": {
    always: async (things) => {
      const { apiId, key } = await things.key({ permissions: ["a.b"] });
      return {
        body: {
          key,
          apiId,
          tags: ["x"],
          authorization: { permissions: { and: ["a.b"] } },
          ratelimits: [{ name: "inline", limit: 5, duration: 1000 }],
        },
      };
    },
  },
  "v1/keys.addPermissions": connecting("permissions"),
  "v1/keys.removePermissions": disconnecting("permissions"),
  "v1/keys.setPermissions": connecting("permissions", { bySlug: true }),
  "v1/keys.addRoles": connecting("roles"),
  "v1/keys.removeRoles": disconnecting("roles"),
  "v1/keys.setRoles": connecting("roles"),

  // ratelimits
  "v1/ratelimits.limit": {
    always: async (things) => {
      const { namespaceId, namespace } = await things.namespace();
      return { body: { namespace, ...A_LIMIT }, namespaceId };
    },
    newNamespace: async (things) => ({ body: { namespace: things.name("new"), ...A_LIMIT } }),
  },
  "v1/ratelimits.setOverride": ofNamespace(A_LIMIT),
  "v1/ratelimits.getOverride": OF_OVERRIDE,
  "v1/ratelimits.listOverrides": ofNamespace({}),
  "v1/ratelimits.deleteOverride": OF_OVERRIDE,

  // identities
  "v1/identities.createIdentity": { always: async (things) => ({ body: { externalId: things.name("user") } }) },
  "v1/identities.getIdentity": ofIdentity(),
  "v1/identities.listIdentities": {
    always: async (things) => {
      await things.identity();
      return { body: { environment: "default" }, environment: "default" };
    },
  },
  "v1/identities.updateIdentity": ofIdentity({ meta: { plan: "pro" } }),
  "v1/identities.deleteIdentity": { always: ofIdentity().always },

  // permissions
  "v1/permissions.createPermission": { always: async (things) => ({ body: { name: things.name("slug") } }) },
  "v1/permissions.getPermission": { always: ofPermission },
  "v1/permissions.listPermissions": { always: nothing },
  "v1/permissions.deletePermission": { always: ofPermission },
  "v1/permissions.createRole": { always: async (things) => ({ body: { name: things.name("role") } }) },
  "v1/permissions.getRole": { always: ofRole },
  "v1/permissions.listRoles": { always: nothing },
  "v1/permissions.deleteRole": { always: ofRole },

  // analytics
  "v1/analytics.getVerifications": {
    always: async (things) => {
      const { externalId } = await things.identity();
      const { apiId, keyId } = await things.key({ externalId });
      return { body: { apiId, externalId, keyId: [keyId], tag: ["path=/"], groupBy: ["key"] }, apiId };
    },
  },
  "v1/keys.getVerifications": {
    always: async (things) => {
      const { apiId, keyId } = await things.key();
      return { body: { keyId }, apiId };
    },
    owner: async (things) => {
      const { externalId } = await things.identity();
      const { apiId } = await things.key({ externalId });
      return { body: { ownerId: externalId }, apiId };
    },
  },

  // migrations
  "v1/migrations.createKeys": {
    always: async (things) => {
      const apiId = await things.api();
      const { name } = await things.role();
      const { slug } = await things.permission();
      const owner = things.name("owner");
      const hash = { value: things.name("hash"), variant: "sha256_base64" };
      const item = { apiId, hash, ownerId: owner, externalId: owner, roles: [name], permissions: [slug] };
      return { body: [item], apiId };
    },
  },
  "v1/migrations.enqueueKeys": {
    always: async (things) => {
      const apiId = await things.api();
      const { name } = await things.role();
      const { slug } = await things.permission();
      const hash = { value: things.name("hash"), variant: "sha256_base64" };
      const item = { hash, ownerId: things.name("owner"), roles: [name], permissions: [slug] };
      return { body: { migrationId: things.name("migration"), apiId, keys: [item] }, apiId };
    },
    plaintext: async (things) => {
      const apiId = await things.api();
      const keys = [{ plaintext: things.name("secret") }];
      return { body: { migrationId: things.name("migration"), apiId, keys }, apiId };
    },
  },

  // leftovers
  "v1/keys": { always: ofApi() },
  "v1/apis/:apiId/keys": {
    always: async (things) => {
      const { apiId } = await things.key();
      return { body: { apiId }, apiId };
    },
  },
  "v1/keys/verify": {
    always: async (things) => {
      const { apiId, key } = await things.key();
      return { body: { key, apiId } };
    },
  },
};
