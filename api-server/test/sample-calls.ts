import { createHash, randomBytes, randomInt } from "node:crypto";
import { policyBody, type Resources } from "./resources.ts";

/*
 * For every procedure, calls that succeed if the root key has every permission: the ordinary call, `always`, and one for each circumstance
 * that requires more permissions. Each call creates its own objects, so calls are independent.
 */

export interface SampleCall {
  readonly body: unknown;
  /** Ids that can replace the `*` in a permission for this call. */
  readonly apiId?: string;
  readonly namespaceId?: string;
  readonly identityId?: string;
  readonly environment?: string;
}

export type MakeCall = (resources: Resources) => Promise<SampleCall>;

const HOUR_MS = 3_600_000;

const newHash = (): string => createHash("sha256").update(randomBytes(16)).digest("base64");

/** Returns a sample call about one key of an API. */
export const ofKey =
  (
    rest: (resources: Resources) => object | Promise<object> = () => ({}),
    make: Readonly<Record<string, unknown>> = {},
  ): MakeCall =>
  async (resources) => {
    const { apiId, keyId } = await resources.key(make);
    return { body: { keyId, ...(await rest(resources)) }, apiId };
  };

export const ofApi =
  (rest: (resources: Resources) => object | Promise<object> = () => ({})): MakeCall =>
  async (resources) => {
    const apiId = await resources.api();
    return { body: { apiId, ...(await rest(resources)) }, apiId };
  };

export const ofNamespace =
  (rest: object = {}): MakeCall =>
  async (resources) => {
    const { namespaceId, namespace } = await resources.namespace();
    return { body: { namespace, ...rest }, namespaceId };
  };

const ofOverride: MakeCall = async (resources) => {
  const { namespaceId, namespace, identifier } = await resources.override();
  return { body: { namespace, identifier }, namespaceId };
};

export const ofIdentity =
  (rest: object = {}): MakeCall =>
  async (resources) => {
    const { identityId, externalId } = await resources.identity();
    return { body: { identity: externalId, ...rest }, identityId };
  };

const ofRole: MakeCall = async (resources) => ({ body: { role: (await resources.role()).name } });
const ofPermission: MakeCall = async (resources) => ({ body: { permission: (await resources.permission()).slug } });

/** Permission for the root keys that sample calls create. The caller certainly holds it, because creating a root key requires it. */
const A_GRANT = "workspace.*.create_root_key";

const ofRootKey =
  (rest: object = {}): MakeCall =>
  async (resources) => ({ body: { rootKeyId: (await resources.rootKey()).rootKeyId, ...rest } });

export const nothing: MakeCall = async () => ({ body: {} });

export const A_LIMIT = { identifier: "somebody", limit: 10, duration: HOUR_MS };

const recoverableKey: MakeCall = async (resources) => {
  const apiId = await resources.encryptingApi();
  return { body: { apiId, recoverable: true }, apiId };
};

/** Returns a sample call about a key of an API with recoverable keys. */
export const ofEncryptingApi =
  (rest: object, make: Readonly<Record<string, unknown>> = {}): MakeCall =>
  async (resources) => {
    const apiId = await resources.encryptingApi();
    const { keyId } = await resources.key({ ...make, apiId });
    return { body: { keyId, ...rest }, apiId };
  };

const roleNames = async (resources: Resources) => ({ roles: [(await resources.role()).name] });
const slugs = async (resources: Resources) => ({ permissions: [(await resources.permission()).slug] });
const newSlugs = (resources: Resources) => ({ permissions: [resources.name("new.slug")] });

/** Sample calls by procedure path and circumstance. `permissions-expected.ts` uses the same circumstances. */
export type SampleCalls = Readonly<Record<string, Readonly<Record<string, MakeCall>> & { always: MakeCall }>>;

/** Sample calls of v2. Those of v1 are in `sample-calls-v1.ts`; `sampleCallsOf` in `every-procedure.ts` finds both. */
export const SAMPLE_CALLS: SampleCalls = {
  "apis.createApi": { always: async (resources) => ({ body: { name: resources.name("api") } }) },
  "apis.getApi": { always: ofApi() },
  "apis.updateApi": { always: ofApi((resources) => ({ name: resources.name("renamed") })) },
  "apis.deleteApi": { always: ofApi() },
  "apis.listKeys": {
    always: async (resources) => {
      const { apiId } = await resources.key();
      return { body: { apiId }, apiId };
    },
    decrypt: async (resources) => {
      const apiId = await resources.encryptingApi();
      return { body: { apiId, decrypt: true }, apiId };
    },
  },

  "keys.createKey": { always: ofApi(), recoverable: recoverableKey },
  "keys.getKey": { always: ofKey(), decrypt: ofEncryptingApi({ decrypt: true }) },
  "keys.whoami": {
    always: async (resources) => {
      const { apiId, key } = await resources.key();
      return { body: { key }, apiId };
    },
  },
  "keys.explainVerification": {
    always: ofKey(),
    atGate: async (resources) => {
      const { apiId, keyId } = await resources.key();
      const { policyId } = await resources.policy(apiId);
      return { body: { keyId, policyId }, apiId };
    },
  },
  "keys.verifyKey": {
    always: async (resources) => {
      const { apiId, key } = await resources.key();
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
    always: ofApi(async (resources) => ({ migrationId: await resources.migration(), keys: [{ hash: newHash() }] })),
  },
  "keys.addPermissions": { always: ofKey(slugs), newSlug: ofKey(newSlugs) },
  "keys.removePermissions": {
    always: async (resources) => {
      const permissions = [(await resources.permission()).slug];
      const { apiId, keyId } = await resources.key({ permissions });
      return { body: { keyId, permissions }, apiId };
    },
  },
  "keys.setPermissions": { always: ofKey(slugs), newSlug: ofKey(newSlugs) },
  "keys.addRoles": { always: ofKey(roleNames) },
  "keys.removeRoles": {
    always: async (resources) => {
      const roles = [(await resources.role()).name];
      const { apiId, keyId } = await resources.key({ roles });
      return { body: { keyId, roles }, apiId };
    },
  },
  "keys.setRoles": { always: ofKey(roleNames) },

  "identities.createIdentity": { always: async (resources) => ({ body: { externalId: resources.name("user") } }) },
  "identities.getIdentity": { always: ofIdentity() },
  // The call requires permission to read every identity of the workspace. This permission suffices, because the test's workspace has only
  // one identity.
  "identities.listIdentities": {
    always: async (resources) => ({ body: {}, identityId: (await resources.identity()).identityId }),
  },
  "identities.updateIdentity": { always: ofIdentity({ meta: { plan: "pro" } }) },
  "identities.deleteIdentity": { always: ofIdentity() },

  "ratelimit.limit": {
    always: ofNamespace(A_LIMIT),
    newNamespace: async (resources) => ({ body: { namespace: resources.name("new"), ...A_LIMIT } }),
  },
  "ratelimit.multiLimit": {
    always: async (resources) => {
      const { namespaceId, namespace } = await resources.namespace();
      return { body: [{ namespace, ...A_LIMIT }], namespaceId };
    },
    newNamespace: async (resources) => ({ body: [{ namespace: resources.name("new"), ...A_LIMIT }] }),
  },
  "ratelimit.setOverride": { always: ofNamespace(A_LIMIT) },
  "ratelimit.getOverride": { always: ofOverride },
  "ratelimit.listOverrides": {
    always: async (resources) => {
      const { namespaceId, namespace } = await resources.override();
      return { body: { namespace }, namespaceId };
    },
  },
  "ratelimit.deleteOverride": { always: ofOverride },
  "ratelimit.createNamespace": { always: async (resources) => ({ body: { name: resources.name("namespace") } }) },
  "ratelimit.getNamespace": { always: ofNamespace() },
  "ratelimit.listNamespaces": { always: nothing },
  "ratelimit.deleteNamespace": { always: ofNamespace() },

  "permissions.createPermission": {
    always: async (resources) => ({ body: { name: "Something", slug: resources.name("slug") } }),
  },
  "permissions.getPermission": { always: ofPermission },
  "permissions.listPermissions": { always: nothing },
  "permissions.updatePermission": {
    always: async (resources) => ({ body: { permission: (await resources.permission()).slug, name: "Renamed" } }),
  },
  "permissions.deletePermission": { always: ofPermission },
  "permissions.createRole": {
    always: async (resources) => ({ body: { name: resources.name("role") } }),
    permissions: async (resources) => ({ body: { name: resources.name("role"), ...(await slugs(resources)) } }),
    newSlug: async (resources) => ({ body: { name: resources.name("role"), ...newSlugs(resources) } }),
  },
  "permissions.getRole": { always: ofRole },
  "permissions.listRoles": { always: nothing },
  "permissions.updateRole": {
    always: async (resources) => ({ body: { role: (await resources.role()).name, name: resources.name("renamed") } }),
  },
  "permissions.deleteRole": { always: ofRole },
  "permissions.setRolePermissions": {
    always: async (resources) => ({ body: { roleId: (await resources.role()).roleId, ...(await slugs(resources)) } }),
    newSlug: async (resources) => ({ body: { roleId: (await resources.role()).roleId, ...newSlugs(resources) } }),
  },

  "analytics.getVerifications": {
    always: async (resources) => ({
      body: { query: "SELECT key_id, count() AS n FROM key_verifications_v1 GROUP BY key_id" },
      apiId: await resources.api(),
    }),
  },
  "analytics.getRatelimits": {
    always: async (resources) => ({
      body: { query: "SELECT identifier, count() AS n FROM ratelimits_v1 GROUP BY identifier" },
      namespaceId: (await resources.namespace()).namespaceId,
    }),
  },

  "policies.getPolicy": {
    always: async (resources) => {
      const { apiId, policyId } = await resources.policy();
      return { body: { policyId }, apiId };
    },
    byName: async (resources) => {
      const { apiId, name } = await resources.policy();
      return { body: { apiId, name }, apiId };
    },
    byManager: async (resources) => {
      const { apiId, policyId } = await resources.policy();
      return { body: { manager: await resources.manage("policies", policyId) }, apiId };
    },
  },
  "policies.listPolicies": {
    always: async (resources) => {
      const { apiId } = await resources.policy();
      return { body: { apiId }, apiId };
    },
    // The workspace has only one policy, so the permission for that policy suffices, as in identities.listIdentities.
    ofAllApis: async (resources) => ({ body: {}, apiId: (await resources.policy()).apiId }),
  },
  // The workspace has only one policy, so the permission for that policy suffices, as in identities.listIdentities.
  "policies.listStatus": { always: async (resources) => ({ body: {}, apiId: (await resources.policy()).apiId }) },

  "admin.listPolicies": { always: nothing },
  "admin.getPolicy": { always: async (resources) => ({ body: { policyId: (await resources.policy()).policyId } }) },
  "admin.explainVerification": {
    always: async (resources) => ({ body: { keyId: (await resources.key()).keyId } }),
    byHash: async (resources) => {
      const { key } = await resources.key();
      return { body: { keyHash: createHash("sha256").update(key).digest("base64") } };
    },
  },
  "admin.explainRequest": { always: async () => ({ body: { requestId: "req_1" } }) },
  "admin.getInstallation": { always: nothing },

  "workspaces.getWorkspace": { always: async () => ({ body: {} }) },

  "admin.listAudit": { always: nothing },
  "admin.getIdentityDetails": { always: ofIdentity() },
  "admin.listRoles": {
    always: async (resources) => {
      await resources.role();
      return { body: {} };
    },
  },
  "admin.listPermissions": {
    always: async (resources) => {
      await resources.permission();
      return { body: {} };
    },
    roleIds: async (resources) => {
      const { slug } = await resources.permission();
      return { body: { roleIds: [(await resources.role([slug])).roleId] } };
    },
  },
  "admin.listNamespaces": {
    always: async (resources) => {
      await resources.override();
      return { body: {} };
    },
  },
  "admin.listOverrides": {
    always: async (resources) => {
      const { namespaceId, namespace } = await resources.override();
      return { body: { namespace }, namespaceId };
    },
  },
  "admin.explainOverride": { always: ofOverride },
  "admin.getUsage": {
    always: async (resources) => ({ body: { from: 0, to: HOUR_MS, groupBy: "key" }, apiId: await resources.api() }),
    ofApi: async (resources) => {
      const apiId = await resources.api();
      return { body: { from: 0, to: HOUR_MS, groupBy: "key", limit: 10, apiId }, apiId };
    },
  },
  "admin.getUsageState": { always: nothing },
  "admin.getAnalyticsSchema": { always: nothing },
  "admin.getLatencies": {
    always: async (resources) => ({
      body: { from: 0, to: HOUR_MS, step: "hour", keySpaceId: "ks_1", keyId: "key_1", externalId: "user_1" },
      apiId: await resources.api(),
    }),
  },
  "admin.resolveNames": {
    always: async (resources) => {
      const { apiId, keyId } = await resources.key();
      return { body: { kind: "key", ids: [keyId] }, apiId };
    },
    api: async (resources) => {
      const apiId = await resources.api();
      return { body: { kind: "api", ids: [apiId] }, apiId };
    },
    namespace: async (resources) => {
      const { namespaceId } = await resources.namespace();
      return { body: { kind: "namespace", ids: [namespaceId] }, namespaceId };
    },
  },
  "admin.listWorkspaces": { always: nothing },
  "admin.createWorkspace": { always: async (resources) => ({ body: { name: resources.name("team") } }) },
  // The new quota is high enough for later calls.
  "admin.updateWorkspace": {
    always: async ({ workspaceId }) => ({ body: { workspaceId, quotaPerMinute: 1_000_000 } }),
  },
  "admin.getSettings": { always: async () => ({ body: {} }) },
  "admin.updateSettings": {
    // Disables analytics first, so that the call changes something.
    always: async ({ ask }) => {
      await ask("admin.updateSettings", { analytics: false });
      return { body: { analytics: true } };
    },
  },
  "admin.updateQueryLimits": { always: async () => ({ body: { queriesPerHour: 100_000 + randomInt(100_000) } }) },
  "admin.createRootKey": {
    always: async (resources) => ({ body: { name: resources.name("root key"), permissions: [A_GRANT] } }),
  },
  "admin.getRootKey": { always: ofRootKey() },
  "admin.updateRootKey": { always: ofRootKey({ name: "renamed root key", enabled: false }) },
  "admin.rotateRootKey": { always: ofRootKey({ overlap: HOUR_MS }) },
  "admin.deleteRootKey": { always: ofRootKey() },
  "admin.listRootKeys": {
    always: async (resources) => {
      await resources.rootKey();
      return { body: {} };
    },
  },
  "admin.listPeople": {
    always: async (resources) => {
      await resources.session();
      return { body: {} };
    },
  },
  "admin.getPerson": { always: async (resources) => ({ body: { sessionId: await resources.session() } }) },
  "admin.deleteSession": {
    always: async (resources) => ({ body: { sessionId: await resources.session() } }),
    everywhere: async (resources) => ({ body: { sessionId: await resources.session(), everywhere: true } }),
  },
  "admin.listSignInLinks": {
    always: async (resources) => {
      await resources.signInLink();
      return { body: {} };
    },
  },
  "admin.createSignInLink": {
    always: async (resources) => ({ body: { name: resources.name("person"), role: "viewer" } }),
  },
  "admin.deleteSignInLink": { always: async (resources) => ({ body: { linkId: await resources.signInLink() } }) },
  "admin.listApis": { always: async (resources) => ({ body: {}, apiId: await resources.api() }) },
  "admin.searchKeys": {
    always: async (resources) => ({ body: {}, apiId: (await resources.key()).apiId }),
    narrowed: async (resources) => {
      const { externalId } = await resources.identity();
      const { apiId, keyId, key } = await resources.key({ externalId });
      const [role, permission] = [(await resources.role()).name, (await resources.permission()).slug];
      await resources.ask("keys.addRoles", { keyId, roles: [role] });
      await resources.ask("keys.addPermissions", { keyId, permissions: [permission] });
      const hash = createHash("sha256").update(key).digest("base64");
      return { body: { apiId, keyId, hash, externalId, role, permission, enabled: true }, apiId };
    },
  },
  "admin.getKeyDetails": { always: ofKey() },
  "admin.disableKeysOfOwner": {
    always: async (resources) => {
      const { externalId } = await resources.identity();
      const { apiId } = await resources.key({ externalId });
      return { body: { externalId }, apiId };
    },
    ofApi: async (resources) => {
      const { externalId } = await resources.identity();
      const { apiId } = await resources.key({ externalId });
      return { body: { externalId, apiId }, apiId };
    },
  },
  "admin.startImport": { always: ofApi((resources) => ({ name: resources.name("import") })) },

  "managed.getObject": {
    always: async (resources) => {
      const apiId = await resources.api();
      return { body: { kind: "api", id: apiId }, apiId };
    },
    key: async (resources) => {
      const { apiId, keyId } = await resources.key();
      return { body: { kind: "key", id: keyId }, apiId };
    },
    policy: async (resources) => {
      const { apiId, policyId } = await resources.policy();
      return { body: { kind: "policy", id: policyId }, apiId };
    },
    role: async (resources) => ({ body: { kind: "role", id: (await resources.role()).roleId } }),
    permission: async (resources) => ({
      body: { kind: "permission", id: (await resources.permission()).permissionId },
    }),
    namespace: async (resources) => {
      const { namespaceId } = await resources.namespace();
      return { body: { kind: "namespace", id: namespaceId }, namespaceId };
    },
    override: async (resources) => {
      const { namespaceId, overrideId } = await resources.override();
      return { body: { kind: "override", id: overrideId }, namespaceId };
    },
  },
  "managed.listDigests": {
    always: async (resources) => {
      const cluster = firstPartOf(await resources.manage("roles", (await resources.role()).roleId));
      return { body: { kind: "role", cluster } };
    },
    namespace: async (resources) => {
      const { namespaceId } = await resources.namespace();
      const cluster = firstPartOf(await resources.manage("ratelimit_namespaces", namespaceId));
      return { body: { kind: "namespace", cluster }, namespaceId };
    },
    override: async (resources) => {
      const { namespaceId, overrideId } = await resources.override();
      const cluster = firstPartOf(await resources.manage("ratelimit_overrides", overrideId));
      return { body: { kind: "override", cluster }, namespaceId };
    },
  },
  "managed.applyObject": {
    always: async (resources) => {
      const { slug } = await resources.permission();
      return { body: manifest(resources, "Role", { name: resources.name("role"), permissions: [slug] }) };
    },
    newSlug: async (resources) => {
      const name = resources.name("role");
      return { body: manifest(resources, "Role", { name, permissions: [resources.name("slug")] }) };
    },
    changedRole: async (resources) => {
      const [{ slug }, { slug: other }] = [await resources.permission(), await resources.permission()];
      const body = manifest(resources, "Role", { name: resources.name("role"), permissions: [slug] });
      await resources.ask("managed.applyObject", body);
      return { body: { ...body, spec: { name: resources.name("role"), permissions: [other] } } };
    },
    dryRun: async (resources) => {
      const body = manifest(resources, "Role", { name: resources.name("role"), permissions: [resources.name("slug")] });
      return { body: { ...body, dryRun: true } };
    },
    namespace: async (resources) => ({
      body: manifest(resources, "RatelimitNamespace", { name: resources.name("namespace") }),
    }),
    override: (resources) => anOverride(resources),
    movedOverride: async (resources) => {
      const { body, namespaceId } = await appliedOverride(resources);
      return { body: { ...body, spec: { ...body.spec, identifier: "umbrella" } }, namespaceId };
    },
    key: (resources) => aKey(resources),
    changedKey: async (resources) => {
      const { body, apiId } = await aKey(resources);
      const { key } = await resources.ask("managed.applyObject", body);
      return { body: { ...body, secret: { keyId: key.issued.keyId, mayIssue: false } }, apiId };
    },
    replacedKey: async (resources) => {
      const { body, apiId } = await aKey(resources);
      await resources.ask("managed.applyObject", body);
      return { body: { ...body, secret: { mayIssue: false } }, apiId };
    },
    policy: async (resources) => ({
      body: manifest(resources, "ApiKeyPolicy", { api: { name: resources.name("api") }, target: { port: 8080 } }),
    }),
    sharedLimit: async (resources) => {
      const apiId = await resources.api();
      const { namespace } = await resources.namespace();
      const rules = [{ ratelimits: [{ namespace, identifier: "Key" as const, limit: 10, duration: "1h" }] }];
      return { body: policyBody(apiId, resources.name("policy"), { rules }), apiId };
    },
    changedPolicy: async (resources) => {
      const { body, apiId } = await appliedPolicy(resources);
      return { body: { ...body, spec: { ...body.spec, mode: "Audit" } }, apiId };
    },
  },
  "managed.deleteObject": {
    always: async (resources) => {
      const { manager, kind, spec } = manifest(resources, "Role", { name: resources.name("role") });
      await resources.ask("managed.applyObject", { manager, kind, spec });
      return { body: { manager, kind } };
    },
    dryRun: async (resources) => {
      const { manager, kind, spec } = manifest(resources, "Role", { name: resources.name("role") });
      await resources.ask("managed.applyObject", { manager, kind, spec });
      return { body: { manager, kind, dryRun: true } };
    },
    namespace: async (resources) => {
      const { manager, kind, spec } = manifest(resources, "RatelimitNamespace", { name: resources.name("namespace") });
      const { ids } = await resources.ask("managed.applyObject", { manager, kind, spec });
      return { body: { manager, kind }, namespaceId: ids.namespaceId };
    },
    override: async (resources) => {
      const { body, namespaceId } = await appliedOverride(resources);
      return { body: { manager: body.manager, kind: body.kind }, namespaceId };
    },
    policy: async (resources) => {
      const { body, apiId } = await appliedPolicy(resources);
      return { body: { manager: body.manager, kind: body.kind }, apiId };
    },
    key: async (resources) => {
      const { body, apiId } = await aKey(resources);
      await resources.ask("managed.applyObject", body);
      return { body: { manager: body.manager, kind: body.kind }, apiId };
    },
    withApi: async (resources) => {
      const { body, apiId } = await appliedPolicy(resources);
      return { body: { manager: body.manager, kind: body.kind, deletionPolicy: "Delete" }, apiId };
    },
  },
};

/** Returns a manifest with its own manager, as the body of managed.applyObject. */
const manifest = <Spec extends object>({ name }: Resources, kind: string, spec: Spec) => ({
  manager: `main/${kind}/shop/${name("object").replaceAll("_", "-")}`,
  kind,
  spec,
});

async function aKey(resources: Resources) {
  const apiId = await resources.api();
  const body = manifest(resources, "ApiKey", { apiRef: { id: apiId }, secretRef: { name: "billing" } });
  return { body: { ...body, secret: { mayIssue: true } }, apiId };
}

async function anOverride(resources: Resources) {
  const namespace = manifest(resources, "RatelimitNamespace", { name: resources.name("namespace") });
  const { ids } = await resources.ask("managed.applyObject", namespace);
  const namespaceRef = { name: namespace.manager.split("/").at(-1) };
  const spec = { namespaceRef, identifier: "acme", limit: 5, duration: "1m" };
  return { body: manifest(resources, "RatelimitOverride", spec), namespaceId: ids.namespaceId as string };
}

async function appliedOverride(resources: Resources) {
  const made = await anOverride(resources);
  await resources.ask("managed.applyObject", made.body);
  return made;
}

async function appliedPolicy(resources: Resources) {
  const spec = { api: { name: resources.name("api") }, target: { port: 8080 } };
  const body = manifest(resources, "ApiKeyPolicy", spec);
  const { ids } = await resources.ask("managed.applyObject", body);
  return { body, apiId: ids.apiId as string };
}

/** Returns the cluster name that a manager name contains. */
const firstPartOf = (manager: string): string => manager.split("/")[0] ?? "";
