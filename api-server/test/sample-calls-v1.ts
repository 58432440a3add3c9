import type { Resources } from "./resources.ts";
import { A_LIMIT, type MakeCall, nothing, ofApi, ofEncryptingApi, ofKey, type SampleCalls } from "./sample-calls.ts";

/* Successful calls of every v1 procedure, in the form of `sample-calls.ts`. For a GET procedure the body is sent as a query string. */

/** A v1 call can refer to an identity or a namespace by either of two fields. */
const ofIdentity = (rest: object = {}) => ({
  always: async (resources: Resources) => {
    const { identityId } = await resources.identity();
    return { body: { identityId, ...rest }, identityId };
  },
  byExternalId: async (resources: Resources) => {
    const { identityId, externalId } = await resources.identity();
    return { body: { externalId, ...rest }, identityId };
  },
});

const ofNamespace = (rest: object) => ({
  always: async (resources: Resources) => {
    const { namespaceId } = await resources.namespace();
    return { body: { namespaceId, ...rest }, namespaceId };
  },
  byName: async (resources: Resources) => {
    const { namespaceId, namespace } = await resources.namespace();
    return { body: { namespaceName: namespace, ...rest }, namespaceId };
  },
});

const OF_OVERRIDE = {
  always: async (resources: Resources) => {
    const { namespaceId, identifier } = await resources.override();
    return { body: { namespaceId, identifier }, namespaceId };
  },
  byName: async (resources: Resources) => {
    const { namespaceId, namespace, identifier } = await resources.override();
    return { body: { namespaceName: namespace, identifier }, namespaceId };
  },
};

const ofPermission: MakeCall = async (resources) => ({
  body: { permissionId: (await resources.permission()).permissionId },
});
const ofRole: MakeCall = async (resources) => ({ body: { roleId: (await resources.role()).roleId } });

type LinkNoun = "permissions" | "roles";

const newEnd = async (resources: Resources, noun: LinkNoun) => {
  if (noun === "permissions") {
    const { permissionId, slug } = await resources.permission();
    return { id: permissionId, name: slug };
  }
  const { roleId, name } = await resources.role();
  return { id: roleId, name };
};

const linkCall = async (
  resources: Resources,
  noun: LinkNoun,
  item: object,
  key: Parameters<Resources["key"]>[0] = {},
) => ({
  body: { keyId: (await resources.key(key)).keyId, [noun]: [item] },
});

/** Links a permission or role to a key. Permissions are identified by slug if the procedure has that field. */
const connecting = (noun: LinkNoun, { bySlug = false } = {}) => ({
  always: async (resources: Resources) => linkCall(resources, noun, { id: (await newEnd(resources, noun)).id }),
  ...(bySlug
    ? {
        bySlug: async (resources: Resources) =>
          linkCall(resources, noun, { slug: (await newEnd(resources, noun)).name }),
      }
    : {}),
  [noun === "roles" ? "newRole" : "newSlug"]: (resources: Resources) =>
    linkCall(resources, noun, { name: resources.name("new"), create: true }),
});

/** Unlinks a permission or role of the key. */
const disconnecting = (noun: LinkNoun) => ({
  always: async (resources: Resources) => {
    const { id, name } = await newEnd(resources, noun);
    return linkCall(resources, noun, { id }, { [noun]: [name] });
  },
  byName: async (resources: Resources) => {
    const { name } = await newEnd(resources, noun);
    return linkCall(resources, noun, { name }, { [noun]: [name] });
  },
});

export const V1_SAMPLE_CALLS: SampleCalls = {
  "v1/liveness": { always: async () => ({ body: {} }) },

  // apis
  "v1/apis.createApi": { always: async (resources) => ({ body: { name: resources.name("api") } }) },
  "v1/apis.getApi": { always: ofApi() },
  "v1/apis.listKeys": {
    always: async (resources) => {
      const { apiId } = await resources.key();
      return { body: { apiId }, apiId };
    },
    decrypt: async (resources) => {
      const apiId = await resources.encryptingApi();
      await resources.key({ apiId, recoverable: true });
      return { body: { apiId, decrypt: true }, apiId };
    },
  },
  "v1/apis.deleteApi": { always: ofApi() },
  "v1/apis.deleteKeys": {
    always: async (resources) => {
      const { apiId } = await resources.key();
      return { body: { apiId }, apiId };
    },
  },

  // keys
  "v1/keys.createKey": {
    always: ofApi((resources) => ({ ownerId: resources.name("owner"), externalId: resources.name("owner") })),
    recoverable: async (resources) => {
      const apiId = await resources.encryptingApi();
      return { body: { apiId, recoverable: true }, apiId };
    },
    newRole: ofApi((resources) => ({ roles: [resources.name("role")] })),
    newSlug: ofApi((resources) => ({ permissions: [resources.name("slug")] })),
  },
  "v1/keys.getKey": {
    always: ofKey(),
    decrypt: ofEncryptingApi({ decrypt: true }, { recoverable: true }),
  },
  "v1/keys.whoami": {
    always: async (resources) => {
      const { apiId, key } = await resources.key();
      return { body: { key }, apiId };
    },
  },
  "v1/keys.updateKey": {
    always: ofKey((resources) => ({ ownerId: resources.name("owner"), externalId: resources.name("owner") })),
    roles: ofKey(async (resources) => ({ roles: [{ id: (await resources.role()).roleId }] })),
    newRole: ofKey((resources) => ({ roles: [{ name: resources.name("role"), create: true }] })),
    permissions: ofKey(async (resources) => ({ permissions: [{ id: (await resources.permission()).permissionId }] })),
    newSlug: ofKey((resources) => ({ permissions: [{ name: resources.name("slug"), create: true }] })),
  },
  "v1/keys.updateRemaining": {
    always: ofKey(() => ({ op: "set", value: 5 })),
  },
  "v1/keys.deleteKey": { always: ofKey() },
  "v1/keys.verifyKey": {
    always: async (resources) => {
      const { apiId, key } = await resources.key({ permissions: ["a.b"] });
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
    always: async (resources) => {
      const { namespaceId, namespace } = await resources.namespace();
      return { body: { namespace, ...A_LIMIT }, namespaceId };
    },
    newNamespace: async (resources) => ({ body: { namespace: resources.name("new"), ...A_LIMIT } }),
  },
  "v1/ratelimits.setOverride": ofNamespace(A_LIMIT),
  "v1/ratelimits.getOverride": OF_OVERRIDE,
  "v1/ratelimits.listOverrides": ofNamespace({}),
  "v1/ratelimits.deleteOverride": OF_OVERRIDE,

  // identities
  "v1/identities.createIdentity": { always: async (resources) => ({ body: { externalId: resources.name("user") } }) },
  "v1/identities.getIdentity": ofIdentity(),
  "v1/identities.listIdentities": {
    always: async (resources) => {
      await resources.identity();
      return { body: { environment: "default" }, environment: "default" };
    },
  },
  "v1/identities.updateIdentity": ofIdentity({ meta: { plan: "pro" } }),
  "v1/identities.deleteIdentity": { always: ofIdentity().always },

  // permissions
  "v1/permissions.createPermission": { always: async (resources) => ({ body: { name: resources.name("slug") } }) },
  "v1/permissions.getPermission": { always: ofPermission },
  "v1/permissions.listPermissions": { always: nothing },
  "v1/permissions.deletePermission": { always: ofPermission },
  "v1/permissions.createRole": { always: async (resources) => ({ body: { name: resources.name("role") } }) },
  "v1/permissions.getRole": { always: ofRole },
  "v1/permissions.listRoles": { always: nothing },
  "v1/permissions.deleteRole": { always: ofRole },

  // analytics
  "v1/analytics.getVerifications": {
    always: async (resources) => {
      const { externalId } = await resources.identity();
      const { apiId, keyId } = await resources.key({ externalId });
      return { body: { apiId, externalId, keyId: [keyId], tag: ["path=/"], groupBy: ["key"] }, apiId };
    },
  },
  "v1/keys.getVerifications": {
    always: async (resources) => {
      const { apiId, keyId } = await resources.key();
      return { body: { keyId }, apiId };
    },
    owner: async (resources) => {
      const { externalId } = await resources.identity();
      const { apiId } = await resources.key({ externalId });
      return { body: { ownerId: externalId }, apiId };
    },
  },

  // migrations
  "v1/migrations.createKeys": {
    always: async (resources) => {
      const apiId = await resources.api();
      const { name } = await resources.role();
      const { slug } = await resources.permission();
      const owner = resources.name("owner");
      const hash = { value: resources.name("hash"), variant: "sha256_base64" };
      const item = { apiId, hash, ownerId: owner, externalId: owner, roles: [name], permissions: [slug] };
      return { body: [item], apiId };
    },
  },
  "v1/migrations.enqueueKeys": {
    always: async (resources) => {
      const apiId = await resources.api();
      const { name } = await resources.role();
      const { slug } = await resources.permission();
      const hash = { value: resources.name("hash"), variant: "sha256_base64" };
      const item = { hash, ownerId: resources.name("owner"), roles: [name], permissions: [slug] };
      return { body: { migrationId: resources.name("migration"), apiId, keys: [item] }, apiId };
    },
    plaintext: async (resources) => {
      const apiId = await resources.api();
      const keys = [{ plaintext: resources.name("secret") }];
      return { body: { migrationId: resources.name("migration"), apiId, keys }, apiId };
    },
  },

  // unversioned paths
  "v1/keys": { always: ofApi() },
  "v1/apis/:apiId/keys": {
    always: async (resources) => {
      const { apiId } = await resources.key();
      return { body: { apiId }, apiId };
    },
  },
  "v1/keys/verify": {
    always: async (resources) => {
      const { apiId, key } = await resources.key();
      return { body: { key, apiId } };
    },
  },
};
