import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import type { PolicyFields } from "../../core/manifests/from-store/policy-spec.ts";
import { managerOfPolicy } from "../../core/manifests/manager.ts";

/* Creates objects of a workspace through the API, each with a unique name, for tests that call every procedure. */

/** Calls a procedure in the workspace and returns `data`. */
// biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
export type Ask = (path: string, body: unknown) => Promise<any>;

export interface KeyResource {
  readonly apiId: string;
  readonly keyId: string;
  /** The created key in plaintext. */
  readonly key: string;
}

export type ManagedTable =
  | "apis"
  | "roles"
  | "permissions"
  | "ratelimit_namespaces"
  | "ratelimit_overrides"
  | "keys"
  | "policies";

/** Kind of manifest that manages the rows of each table. No manifest manages permissions, so their kind exists only in tests. */
const KIND_OF: Readonly<Record<ManagedTable, string>> = {
  apis: "ApiKeyPolicy",
  roles: "Role",
  permissions: "Permission",
  ratelimit_namespaces: "RatelimitNamespace",
  ratelimit_overrides: "RatelimitOverride",
  keys: "ApiKey",
  policies: "ApiKeyPolicy",
};

export interface Resources {
  readonly workspaceId: string;
  readonly ask: Ask;
  name(what: string): string;
  api(): Promise<string>;
  /** Creates a key in a new API unless the body specifies an API. */
  key(body?: { readonly apiId?: string; readonly [field: string]: unknown }): Promise<KeyResource>;
  identity(): Promise<{ identityId: string; externalId: string }>;
  permission(): Promise<{ permissionId: string; slug: string }>;
  role(permissions?: readonly string[]): Promise<{ roleId: string; name: string }>;
  namespace(): Promise<{ namespaceId: string; namespace: string }>;
  override(): Promise<{ namespaceId: string; namespace: string; identifier: string; overrideId: string }>;
  /** Applies the manifest of a policy, in a new API unless one is given. */
  policy(apiId?: string, fields?: PolicyFields): Promise<{ apiId: string; policyId: string; name: string }>;
  /** Sets the manager of an object, as if it had been created with the manager header. Returns the manager name. */
  manage(table: ManagedTable, id: string): Promise<string>;
  /** Creates a root key with the permission that creating root keys requires. */
  rootKey(): Promise<{ rootKeyId: string; rootKey: string; name: string }>;
  /** Inserts the session of a person who has a role only in this workspace. Returns the session's id. */
  session(): Promise<string>;
  signInLink(): Promise<string>;
  /** Inserts a migration into the database, as the command line does, because no procedure creates one. */
  migration(): Promise<string>;
  /** Inserts an API with recoverable keys, because no procedure creates one. */
  encryptingApi(): Promise<string>;
}

export const OVERRIDDEN_LIMIT = 5;
const HOUR_MS = 3_600_000;

export function makeResources(db: Pool, { workspaceId, ask }: { workspaceId: string; ask: Ask }): Resources {
  // Random suffix. It lets a test recognize a name that leaks into a response, and no two names end in the same characters.
  const name = (what: string): string => `${what}_${randomBytes(6).toString("hex")}`;

  async function api(): Promise<string> {
    return (await ask("apis.createApi", { name: name("api") })).apiId;
  }

  async function namespace() {
    const namespace = name("namespace");
    return { namespace, namespaceId: (await ask("ratelimit.createNamespace", { name: namespace })).namespaceId };
  }

  return {
    workspaceId,
    ask,
    name,
    api,
    namespace,
    key: async (body = {}) => {
      const apiId = body.apiId ?? (await api());
      return { apiId, ...(await ask("keys.createKey", { ...body, apiId })) };
    },
    identity: async () => {
      const externalId = name("user");
      return { externalId, identityId: (await ask("identities.createIdentity", { externalId })).identityId };
    },
    permission: async () => {
      const slug = name("slug");
      return { slug, permissionId: (await ask("permissions.createPermission", { name: slug, slug })).permissionId };
    },
    role: async (permissions = []) => {
      const role = name("role");
      return { name: role, roleId: (await ask("permissions.createRole", { name: role, permissions })).roleId };
    },
    override: async () => {
      const where = await namespace();
      const identifier = name("someone");
      const body = { namespace: where.namespaceId, identifier, limit: OVERRIDDEN_LIMIT, duration: HOUR_MS };
      return { ...where, identifier, overrideId: (await ask("ratelimit.setOverride", body)).overrideId };
    },
    policy: async (given, fields) => {
      const apiId = given ?? (await api());
      const { ids, policy } = await ask("managed.applyObject", policyBody(apiId, name("policy"), fields));
      return { apiId, name: policy.name, policyId: ids.policyId };
    },
    rootKey: async () => {
      const body = { name: name("root key"), permissions: ["workspace.*.create_root_key"] };
      const { rootKeyId, rootKey } = await ask("admin.createRootKey", body);
      return { rootKeyId, rootKey, name: body.name };
    },
    session: async () => {
      const id = name("session");
      const roles = JSON.stringify([{ workspace: workspaceId, role: "viewer" }]);
      const text = `insert into sessions (id, token_hash, issuer, subject, name, signed_in_by, roles, link_made_by, created_at,
                                          last_seen_at, expires_at)
                    values ($1, $1, 'postern:link', $2, $2, 'link', $3, 'tester', $4, $4, $4::bigint + 3600000)`;
      await db.query(text, [id, name("person"), roles, Date.now()]);
      return id;
    },
    signInLink: async () => (await ask("admin.createSignInLink", { name: name("person"), role: "viewer" })).linkId,
    manage: async (table, id) => {
      const manager = `main/${KIND_OF[table]}/shop/${name("object")}`;
      const text = `update ${table} set manager = $3 where workspace_id = $1 and id = $2`;
      await db.query(text, [workspaceId, id, manager]);
      return manager;
    },
    migration: async () => {
      const id = name("migration");
      const text = `insert into migrations (id, workspace_id, name, algorithm, created_at) values ($1, $2, $1, 'sha256', 1)`;
      await db.query(text, [id, workspaceId]);
      return id;
    },
    encryptingApi: async () => {
      const apiId = await api();
      await db.query("update apis set key_encryption = true where workspace_id = $1 and id = $2", [workspaceId, apiId]);
      return apiId;
    },
  };
}

/** Returns the body of managed.applyObject for the policy `main/shop/<name>` of an existing API. */
export const policyBody = (apiId: string, name: string, fields: PolicyFields = {}) => ({
  manager: managerOfPolicy({ cluster: "main", namespace: "shop", name }),
  kind: "ApiKeyPolicy" as const,
  spec: { api: { id: apiId }, target: { port: 8080 }, ...fields },
});
