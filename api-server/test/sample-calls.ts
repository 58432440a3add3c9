import { createHash, randomBytes, randomInt } from "node:crypto";
import { policyBody, type Things } from "./things.ts";

/*
 * Calls of every procedure that succeed with every permission: for each the ordinary one, `always`, and one for
 * each circumstance that needs more permissions. Each call creates its own objects, so calls do not affect one another.
 */

export interface SampleCall {
  readonly body: unknown;
  /** Ids that may replace the `*` of a permission in this call. */
  readonly apiId?: string;
  readonly namespaceId?: string;
  readonly identityId?: string;
  readonly environment?: string;
}

export type MakeCall = (things: Things) => Promise<SampleCall>;

const HOUR_MS = 3_600_000;

const newHash = (): string => createHash("sha256").update(randomBytes(16)).digest("base64");

/** A call about one key of an API. */
export const ofKey =
  (
    rest: (things: Things) => object | Promise<object> = () => ({}),
    make: Readonly<Record<string, unknown>> = {},
  ): MakeCall =>
  async (things) => {
    const { apiId, keyId } = await things.key(make);
    return { body: { keyId, ...(await rest(things)) }, apiId };
  };

export const ofApi =
  (rest: (things: Things) => object | Promise<object> = () => ({})): MakeCall =>
  async (things) => {
    const apiId = await things.api();
    return { body: { apiId, ...(await rest(things)) }, apiId };
  };

export const ofNamespace =
  (rest: object = {}): MakeCall =>
  async (things) => {
    const { namespaceId, namespace } = await things.namespace();
    return { body: { namespace, ...rest }, namespaceId };
  };

const ofOverride: MakeCall = async (things) => {
  const { namespaceId, namespace, identifier } = await things.override();
  return { body: { namespace, identifier }, namespaceId };
};

export const ofIdentity =
  (rest: object = {}): MakeCall =>
  async (things) => {
    const { identityId, externalId } = await things.identity();
    return { body: { identity: externalId, ...rest }, identityId };
  };

const ofRole: MakeCall = async (things) => ({ body: { role: (await things.role()).name } });
const ofPermission: MakeCall = async (things) => ({ body: { permission: (await things.permission()).slug } });

/** A caller gives a root key only what it holds, and this is what creating one needs. */
const A_GRANT = "workspace.*.create_root_key";

const ofRootKey =
  (rest: object = {}): MakeCall =>
  async (things) => ({ body: { rootKeyId: (await things.rootKey()).rootKeyId, ...rest } });

export const nothing: MakeCall = async () => ({ body: {} });

export const A_LIMIT = { identifier: "somebody", limit: 10, duration: HOUR_MS };

const recoverableKey: MakeCall = async (things) => {
  const apiId = await things.encryptingApi();
  return { body: { apiId, recoverable: true }, apiId };
};

/** A key of an API that stores encrypted copies. */
export const ofEncryptingApi =
  (rest: object, make: Readonly<Record<string, unknown>> = {}): MakeCall =>
  async (things) => {
    const apiId = await things.encryptingApi();
    const { keyId } = await things.key({ ...make, apiId });
    return { body: { keyId, ...rest }, apiId };
  };

const roleNames = async (things: Things) => ({ roles: [(await things.role()).name] });
const slugs = async (things: Things) => ({ permissions: [(await things.permission()).slug] });
const newSlugs = (things: Things) => ({ permissions: [things.name("new.slug")] });

const ruleWithNamespace = (namespaceId: string) => ({
  access: "Key",
  creditCost: 1,
  ratelimits: [
    {
      scope: { kind: "namespace", namespaceId },
      identifier: "key",
      limit: 10,
      durationMs: HOUR_MS,
      cost: 1,
      accuracy: "strict",
    },
  ],
});

/** By path, and then by circumstance. The circumstances are those of `permissions-expected.ts`. */
export type SampleCalls = Readonly<Record<string, Readonly<Record<string, MakeCall>> & { always: MakeCall }>>;

/** Those of v1 are in `sample-calls-v1.ts`; `sampleCallsOf` in `every-procedure.ts` finds those of either. */
export const SAMPLE_CALLS: SampleCalls = {
  "apis.createApi": { always: async (things) => ({ body: { name: things.name("api") } }) },
  "apis.getApi": { always: ofApi() },
  "apis.updateApi": { always: ofApi((things) => ({ name: things.name("renamed") })) },
  "apis.deleteApi": { always: ofApi() },
  "apis.listKeys": {
    always: async (things) => {
      const { apiId } = await things.key();
      return { body: { apiId }, apiId };
    },
    decrypt: async (things) => {
      const apiId = await things.encryptingApi();
      return { body: { apiId, decrypt: true }, apiId };
    },
  },

  "keys.createKey": { always: ofApi(), recoverable: recoverableKey },
  "keys.getKey": { always: ofKey(), decrypt: ofEncryptingApi({ decrypt: true }) },
  "keys.whoami": {
    always: async (things) => {
      const { apiId, key } = await things.key();
      return { body: { key }, apiId };
    },
  },
  "keys.explainVerification": {
    always: ofKey(),
    atGate: async (things) => {
      const { apiId, keyId } = await things.key();
      const { policyId } = await things.policy(apiId);
      return { body: { keyId, policyId }, apiId };
    },
  },
  "keys.verifyKey": {
    always: async (things) => {
      const { apiId, key } = await things.key();
      return { body: { key }, apiId };
    },
  },
  "keys.updateKey": { always: ofKey(() => ({ name: "renamed" })) },
  "keys.updateCredits": {
    always: ofKey(() => ({ operation: "increment", value: 1 }), { credits: { remaining: 5 } }),
  },
  "keys.deleteKey": { always: ofKey(() => ({ permanent: true })) },
  "keys.rerollKey": {
    always: ofKey(() => ({ expiration: 0 })),
    recoverable: ofEncryptingApi({ expiration: 0 }, { recoverable: true }),
  },
  "keys.migrateKeys": {
    always: ofApi(async (things) => ({ migrationId: await things.migration(), keys: [{ hash: newHash() }] })),
  },
  "keys.addPermissions": { always: ofKey(slugs), newSlug: ofKey(newSlugs) },
  "keys.removePermissions": {
    always: async (things) => {
      const permissions = [(await things.permission()).slug];
      const { apiId, keyId } = await things.key({ permissions });
      return { body: { keyId, permissions }, apiId };
    },
  },
  "keys.setPermissions": { always: ofKey(slugs), newSlug: ofKey(newSlugs) },
  "keys.addRoles": { always: ofKey(roleNames) },
  "keys.removeRoles": {
    always: async (things) => {
      const roles = [(await things.role()).name];
      const { apiId, keyId } = await things.key({ roles });
      return { body: { keyId, roles }, apiId };
    },
  },
  "keys.setRoles": { always: ofKey(roleNames) },

  "identities.createIdentity": { always: async (things) => ({ body: { externalId: things.name("user") } }) },
  "identities.getIdentity": { always: ofIdentity() },
  // Every identity of the workspace must be readable; this is the only one if the call has its own workspace.
  "identities.listIdentities": {
    always: async (things) => ({ body: {}, identityId: (await things.identity()).identityId }),
  },
  "identities.updateIdentity": { always: ofIdentity({ meta: { plan: "pro" } }) },
  "identities.deleteIdentity": { always: ofIdentity() },

  "ratelimit.limit": {
    always: ofNamespace(A_LIMIT),
    newNamespace: async (things) => ({ body: { namespace: things.name("new"), ...A_LIMIT } }),
  },
  "ratelimit.multiLimit": {
    always: async (things) => {
      const { namespaceId, namespace } = await things.namespace();
      return { body: [{ namespace, ...A_LIMIT }], namespaceId };
    },
    newNamespace: async (things) => ({ body: [{ namespace: things.name("new"), ...A_LIMIT }] }),
  },
  "ratelimit.setOverride": { always: ofNamespace(A_LIMIT) },
  "ratelimit.getOverride": { always: ofOverride },
  "ratelimit.listOverrides": {
    always: async (things) => {
      const { namespaceId, namespace } = await things.override();
      return { body: { namespace }, namespaceId };
    },
  },
  "ratelimit.deleteOverride": { always: ofOverride },
  "ratelimit.createNamespace": { always: async (things) => ({ body: { name: things.name("namespace") } }) },
  "ratelimit.getNamespace": { always: ofNamespace() },
  "ratelimit.listNamespaces": { always: nothing },
  "ratelimit.deleteNamespace": { always: ofNamespace() },

  "permissions.createPermission": {
    always: async (things) => ({ body: { name: "Something", slug: things.name("slug") } }),
  },
  "permissions.getPermission": { always: ofPermission },
  "permissions.listPermissions": { always: nothing },
  "permissions.updatePermission": {
    always: async (things) => ({ body: { permission: (await things.permission()).slug, name: "Renamed" } }),
  },
  "permissions.deletePermission": { always: ofPermission },
  "permissions.createRole": {
    always: async (things) => ({ body: { name: things.name("role") } }),
    permissions: async (things) => ({ body: { name: things.name("role"), ...(await slugs(things)) } }),
    newSlug: async (things) => ({ body: { name: things.name("role"), ...newSlugs(things) } }),
  },
  "permissions.getRole": { always: ofRole },
  "permissions.listRoles": { always: nothing },
  "permissions.updateRole": {
    always: async (things) => ({ body: { role: (await things.role()).name, name: things.name("renamed") } }),
  },
  "permissions.deleteRole": { always: ofRole },
  "permissions.setRolePermissions": {
    always: async (things) => ({ body: { roleId: (await things.role()).roleId, ...(await slugs(things)) } }),
    newSlug: async (things) => ({ body: { roleId: (await things.role()).roleId, ...newSlugs(things) } }),
  },

  "analytics.getVerifications": {
    always: async (things) => ({
      body: { query: "SELECT key_id, count() AS n FROM key_verifications_v1 GROUP BY key_id" },
      apiId: await things.api(),
    }),
  },
  "analytics.getRatelimits": {
    always: async (things) => ({
      body: { query: "SELECT identifier, count() AS n FROM ratelimits_v1 GROUP BY identifier" },
      namespaceId: (await things.namespace()).namespaceId,
    }),
  },

  "policies.setPolicy": {
    always: async (things) => {
      const apiId = await things.api();
      return { body: policyBody(apiId, things.name("policy")), apiId };
    },
    sharedLimit: async (things) => {
      const apiId = await things.api();
      const { namespaceId } = await things.namespace();
      return { body: policyBody(apiId, things.name("policy"), [ruleWithNamespace(namespaceId)]), apiId };
    },
  },
  "policies.getPolicy": {
    always: async (things) => {
      const { apiId, policyId } = await things.policy();
      return { body: { policyId }, apiId };
    },
    byName: async (things) => {
      const { apiId, name } = await things.policy();
      return { body: { apiId, name }, apiId };
    },
  },
  "policies.listPolicies": {
    always: async (things) => {
      const { apiId } = await things.policy();
      return { body: { apiId }, apiId };
    },
    // As in identities.listIdentities.
    ofAllApis: async (things) => ({ body: {}, apiId: (await things.policy()).apiId }),
  },
  // As in identities.listIdentities.
  "policies.listStatus": { always: async (things) => ({ body: {}, apiId: (await things.policy()).apiId }) },
  "policies.deletePolicy": {
    always: async (things) => {
      const { apiId, policyId } = await things.policy();
      return { body: { policyId }, apiId };
    },
  },

  "admin.listPolicies": { always: nothing },
  "admin.getPolicy": { always: async (things) => ({ body: { policyId: (await things.policy()).policyId } }) },
  "admin.explainVerification": {
    always: async (things) => ({ body: { keyId: (await things.key()).keyId } }),
    byHash: async (things) => {
      const { key } = await things.key();
      return { body: { keyHash: createHash("sha256").update(key).digest("base64") } };
    },
  },
  "admin.explainRequest": { always: async () => ({ body: { requestId: "req_1" } }) },
  "admin.getInstallation": { always: nothing },

  "workspaces.getWorkspace": { always: async () => ({ body: {} }) },

  "admin.listAudit": { always: nothing },
  "admin.getIdentityDetails": { always: ofIdentity() },
  "admin.listRoles": {
    always: async (things) => {
      await things.role();
      return { body: {} };
    },
  },
  "admin.listPermissions": {
    always: async (things) => {
      await things.permission();
      return { body: {} };
    },
    roleIds: async (things) => {
      const { slug } = await things.permission();
      return { body: { roleIds: [(await things.role([slug])).roleId] } };
    },
  },
  "admin.listNamespaces": {
    always: async (things) => {
      await things.override();
      return { body: {} };
    },
  },
  "admin.listOverrides": {
    always: async (things) => {
      const { namespaceId, namespace } = await things.override();
      return { body: { namespace }, namespaceId };
    },
  },
  "admin.explainOverride": { always: ofOverride },
  "admin.getUsageState": { always: nothing },
  "admin.getAnalyticsSchema": { always: nothing },
  "admin.getLatencies": {
    always: async (things) => ({
      body: { from: 0, to: HOUR_MS, step: "hour", keySpaceId: "ks_1", keyId: "key_1", externalId: "user_1" },
      apiId: await things.api(),
    }),
  },
  "admin.nameObjects": {
    always: async (things) => {
      const { apiId, keyId } = await things.key();
      return { body: { kind: "key", ids: [keyId] }, apiId };
    },
    api: async (things) => {
      const apiId = await things.api();
      return { body: { kind: "api", ids: [apiId] }, apiId };
    },
    namespace: async (things) => {
      const { namespaceId } = await things.namespace();
      return { body: { kind: "namespace", ids: [namespaceId] }, namespaceId };
    },
  },
  "admin.listWorkspaces": { always: nothing },
  "admin.createWorkspace": { always: async (things) => ({ body: { name: things.name("team") } }) },
  // Its own quota, so that the calls after it are answered.
  "admin.updateWorkspace": {
    always: async ({ workspaceId }) => ({ body: { workspaceId, quotaPerMinute: 1_000_000 } }),
  },
  "admin.getSettings": { always: async () => ({ body: {} }) },
  "admin.updateSettings": {
    // Of two calls one changes something.
    always: async ({ ask }) => {
      await ask("admin.updateSettings", { analytics: false });
      return { body: { analytics: true } };
    },
  },
  "admin.updateBounds": { always: async () => ({ body: { queriesPerHour: 100_000 + randomInt(100_000) } }) },
  "admin.createRootKey": {
    always: async (things) => ({ body: { name: things.name("root key"), permissions: [A_GRANT] } }),
  },
  "admin.getRootKey": { always: ofRootKey() },
  "admin.updateRootKey": { always: ofRootKey({ name: "renamed root key", enabled: false }) },
  "admin.rotateRootKey": { always: ofRootKey({ overlap: HOUR_MS }) },
  "admin.deleteRootKey": { always: ofRootKey() },
  "admin.listRootKeys": {
    always: async (things) => {
      await things.rootKey();
      return { body: {} };
    },
  },
  "admin.listApis": { always: async (things) => ({ body: {}, apiId: await things.api() }) },
  "admin.searchKeys": {
    always: async (things) => ({ body: {}, apiId: (await things.key()).apiId }),
    narrowed: async (things) => {
      const { externalId } = await things.identity();
      const { apiId, keyId, key } = await things.key({ externalId });
      const [role, permission] = [(await things.role()).name, (await things.permission()).slug];
      await things.ask("keys.addRoles", { keyId, roles: [role] });
      await things.ask("keys.addPermissions", { keyId, permissions: [permission] });
      const hash = createHash("sha256").update(key).digest("base64");
      return { body: { apiId, keyId, hash, externalId, role, permission, enabled: true }, apiId };
    },
  },
  "admin.getKeyDetails": { always: ofKey() },
  "admin.disableKeysOfOwner": {
    always: async (things) => {
      const { externalId } = await things.identity();
      const { apiId } = await things.key({ externalId });
      return { body: { externalId }, apiId };
    },
    ofApi: async (things) => {
      const { externalId } = await things.identity();
      const { apiId } = await things.key({ externalId });
      return { body: { externalId, apiId }, apiId };
    },
  },
  "admin.startImport": { always: ofApi((things) => ({ name: things.name("import") })) },

  "managed.getObject": {
    always: async (things) => {
      const apiId = await things.api();
      return { body: { kind: "api", id: apiId }, apiId };
    },
    key: async (things) => {
      const { apiId, keyId } = await things.key();
      return { body: { kind: "key", id: keyId }, apiId };
    },
    policy: async (things) => {
      const { apiId, policyId } = await things.policy();
      return { body: { kind: "policy", id: policyId }, apiId };
    },
    role: async (things) => ({ body: { kind: "role", id: (await things.role()).roleId } }),
    permission: async (things) => ({ body: { kind: "permission", id: (await things.permission()).permissionId } }),
    namespace: async (things) => {
      const { namespaceId } = await things.namespace();
      return { body: { kind: "namespace", id: namespaceId }, namespaceId };
    },
    override: async (things) => {
      const { namespaceId, overrideId } = await things.override();
      return { body: { kind: "override", id: overrideId }, namespaceId };
    },
  },
  "managed.listKeys": {
    always: async (things) => {
      const { apiId, keyId } = await things.key();
      return { body: { manager: await things.manage("keys", keyId) }, apiId };
    },
  },
  "managed.listDigests": {
    always: async (things) => {
      const cluster = firstPartOf(await things.manage("roles", (await things.role()).roleId));
      return { body: { kind: "role", cluster } };
    },
    namespace: async (things) => {
      const { namespaceId } = await things.namespace();
      const cluster = firstPartOf(await things.manage("ratelimit_namespaces", namespaceId));
      return { body: { kind: "namespace", cluster }, namespaceId };
    },
    override: async (things) => {
      const { namespaceId, overrideId } = await things.override();
      const cluster = firstPartOf(await things.manage("ratelimit_overrides", overrideId));
      return { body: { kind: "override", cluster }, namespaceId };
    },
  },
  "managed.findObject": {
    always: async (things) => {
      const apiId = await things.api();
      return { body: { kind: "api", manager: await things.manage("apis", apiId) }, apiId };
    },
    policy: async (things) => {
      const { apiId, policyId } = await things.policy();
      return { body: { kind: "policy", manager: await things.manage("policies", policyId) }, apiId };
    },
    role: async (things) => {
      const { roleId } = await things.role();
      return { body: { kind: "role", manager: await things.manage("roles", roleId) } };
    },
    permission: async (things) => {
      const { permissionId } = await things.permission();
      return { body: { kind: "permission", manager: await things.manage("permissions", permissionId) } };
    },
    namespace: async (things) => {
      const { namespaceId } = await things.namespace();
      const manager = await things.manage("ratelimit_namespaces", namespaceId);
      return { body: { kind: "namespace", manager }, namespaceId };
    },
    override: async (things) => {
      const { namespaceId, overrideId } = await things.override();
      const manager = await things.manage("ratelimit_overrides", overrideId);
      return { body: { kind: "override", manager }, namespaceId };
    },
  },
};

/** A manager's cluster. */
const firstPartOf = (manager: string): string => manager.split("/")[0] ?? "";
