import { randomBytes } from "node:crypto";
import { policyBody, type Resources } from "../../api-server/test/resources.ts";
import { hashKey, makeKeyString } from "../../core/keys/key-string.ts";
import type { PolicyFields } from "../../core/manifests/from-store/policy-spec.ts";
import type { Code } from "../../core/verification/codes.ts";

/*
 * Observable effects of each change at another api-server and at a gate. A changing procedure has one or more cases here or is listed in
 * `UNNOTICED` with the reason; otherwise propagation-of-changes.test.ts fails.
 */

/** Expected responses while a state holds; omitted places are not asked. */
export interface Responses {
  /** Expected members of another api-server's data, or the status of an error. */
  readonly api?: {
    readonly path: string;
    readonly body: unknown;
    readonly data?: object;
    readonly status?: number;
    /** Root key of the caller. Default: one with every permission. */
    readonly rootKey?: string;
  };
  /** Expected response of a gate to a request with this key. `forwarded`: headers that the app received. */
  readonly sidecar?: {
    readonly key: string;
    readonly status: number;
    readonly forwarded?: Readonly<Record<string, string>>;
  };
}

export interface NoticedChange {
  /** Called when the change is made. */
  readonly body: () => unknown;
  /** Rules of the gate's policy. Default: every request with a valid key. */
  readonly rules?: PolicyFields["rules"];
  /** Omitted if the change itself creates the key. */
  readonly before?: Responses;
  /** `data` is the response of the procedure. */
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly after: (data: any) => readonly Responses[];
}

/** Environment of a change: the gate guards the keys of this API. */
export interface Ground {
  readonly resources: Resources;
  readonly apiId: string;
}

export type MakeNoticed = (ground: Ground) => Promise<NoticedChange>;

/** Cases by procedure path and by observed effect. */
export type Noticed = Readonly<Record<string, Readonly<Record<string, MakeNoticed>>>>;

const STATUS: Readonly<Record<Code, number>> = {
  VALID: 200,
  NOT_FOUND: 401,
  DISABLED: 401,
  EXPIRED: 401,
  FORBIDDEN: 403,
  INSUFFICIENT_PERMISSIONS: 403,
  RATE_LIMITED: 429,
  USAGE_EXCEEDED: 429,
};

const HOUR_MS = 3_600_000;

export const SLUG = "documents.read";

/** Returns equal expectations for verifying the key at the api-server and the gate. */
export function verified(key: string, code: Code, permissions?: string): Responses {
  const body = permissions === undefined ? { key } : { key, permissions };
  return { api: { path: "keys.verifyKey", body, data: { code } }, sidecar: { key, status: STATUS[code] } };
}

/** Returns a case of a key with its codes before and after the change. */
export const becomes =
  (
    before: Code,
    after: Code,
    change: (ground: Ground) => Promise<{ key: string; body: unknown; permissions?: string }>,
  ): MakeNoticed =>
  async (ground) => {
    const { key, body, permissions } = await change(ground);
    return {
      body: () => body,
      ...(permissions === undefined ? {} : { rules: [{ permissions }] }),
      before: verified(key, before, permissions),
      after: () => [verified(key, after, permissions)],
    };
  };

/** Bodies that create a key and that grant or remove `SLUG`. */
interface Granted {
  readonly key: object;
  readonly change: (keyId: string) => unknown;
}

const granted =
  (before: Code, after: Code) =>
  (make: (ground: Ground) => Promise<Granted>): MakeNoticed =>
    becomes(before, after, async (ground) => {
      const { key: body, change } = await make(ground);
      const { keyId, key } = await ground.resources.key({ apiId: ground.apiId, ...body });
      return { key, permissions: SLUG, body: change(keyId) };
    });
export const gains = granted("INSUFFICIENT_PERMISSIONS", "VALID");
export const loses = granted("VALID", "INSUFFICIENT_PERMISSIONS");

/** Creates a key with an identity limit of which one call takes nearly all or nearly nothing. */
export async function keyOfLimitedIdentity({ resources, apiId }: Ground, limit: number) {
  const externalId = resources.name("user");
  const ratelimits = [{ name: "shared", limit, duration: HOUR_MS, autoApply: true }];
  const { identityId } = await resources.ask("identities.createIdentity", { externalId, ratelimits });
  const { key } = await resources.key({ apiId, externalId });
  return { key, identityId, externalId, ratelimits: ratelimits.map((one) => ({ ...one, limit: 1 })) };
}

/** Creates a namespace in which the gate and the other api-server limit the same key. */
export async function limitedKey({ resources, apiId }: Ground) {
  const { namespace, namespaceId } = await resources.namespace();
  const { keyId, key } = await resources.key({ apiId });
  const limit = 1_000_000;
  const asked = { namespace: namespaceId, identifier: keyId, limit, duration: HOUR_MS };
  const override = { namespace, identifier: keyId, limit: 0, duration: HOUR_MS };
  const responds = (sidecarStatus: number, api: { data?: object; status?: number }): Responses => ({
    api: { path: "ratelimit.limit", body: asked, ...api },
    sidecar: { key, status: sidecarStatus },
  });
  return {
    namespace,
    override,
    rules: [{ ratelimits: [{ namespace, identifier: "Key" as const, limit, duration: HOUR_MS }] }],
    free: responds(200, { data: { success: true, limit } }),
    overridden: responds(429, { data: { success: false, limit: 0 } }),
    namespaceDeleted: responds(200, { status: 410 }),
  };
}

/** Returns a case of a root key that works at another api-server only before the change. */
const refusesRootKey =
  (change: (rootKeyId: string) => unknown): MakeNoticed =>
  async ({ resources }) => {
    const { rootKeyId, rootKey } = await resources.rootKey();
    const api = { path: "workspaces.getWorkspace", body: {}, rootKey };
    return { body: () => change(rootKeyId), before: { api }, after: () => [{ api: { ...api, status: 401 } }] };
  };

/** Stores a role with a manifest. */
async function appliedRole(resources: Resources, permissions: readonly string[]) {
  const name = resources.name("role");
  const body = { manager: `main/Role/shop/${name.replaceAll("_", "-")}`, kind: "Role", spec: { name, permissions } };
  await resources.ask("managed.applyObject", body);
  return { name, body };
}

/** Cases of v2; `noticed-changes-v1.ts` has those of v1. */
export const NOTICED: Noticed = {
  "keys.createKey": {
    "the key is known": async ({ apiId }) => ({
      body: () => ({ apiId }),
      after: ({ key }) => [verified(key, "VALID")],
    }),
  },
  "keys.updateKey": {
    "a key that is disabled is refused": becomes("VALID", "DISABLED", async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId });
      return { key, body: { keyId, enabled: false } };
    }),
  },
  "admin.disableKeysOfOwner": {
    "the keys of the owner are refused": becomes("VALID", "DISABLED", async ({ resources, apiId }) => {
      const externalId = resources.name("user");
      const { key } = await resources.key({ apiId, externalId });
      return { key, body: { externalId, enabled: false } };
    }),
  },
  "keys.updateCredits": {
    "a key without credits can be used again": becomes("USAGE_EXCEEDED", "VALID", async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId, credits: { remaining: 0 } });
      return { key, body: { keyId, operation: "set", value: 100_000 } };
    }),
  },
  "keys.deleteKey": {
    "the key is unknown": becomes("VALID", "NOT_FOUND", async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId });
      return { key, body: { keyId } };
    }),
  },
  "keys.rerollKey": {
    "the old key ends, and its successor is known": async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId });
      return {
        body: () => ({ keyId, expiration: 0 }),
        before: verified(key, "VALID"),
        after: (successor) => [verified(key, "EXPIRED"), verified(successor.key, "VALID")],
      };
    },
  },
  "keys.migrateKeys": {
    "a key that was unknown is known": becomes("NOT_FOUND", "VALID", async ({ resources, apiId }) => {
      const { key } = makeKeyString({ randomBytes: randomBytes(16) });
      const migrationId = await resources.migration();
      return { key, body: { apiId, migrationId, keys: [{ hash: hashKey(key) }] } };
    }),
  },
  "keys.addPermissions": {
    "the key has it": gains(async () => ({ key: {}, change: (keyId) => ({ keyId, permissions: [SLUG] }) })),
  },
  "keys.removePermissions": {
    "the key lacks it": loses(async () => ({
      key: { permissions: [SLUG] },
      change: (keyId) => ({ keyId, permissions: [SLUG] }),
    })),
  },
  "keys.setPermissions": {
    "the key lacks what it is not given": loses(async () => ({
      key: { permissions: [SLUG] },
      change: (keyId) => ({ keyId, permissions: ["documents.write"] }),
    })),
  },
  "keys.addRoles": {
    "the key has what the role grants": gains(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      return { key: {}, change: (keyId) => ({ keyId, roles: [name] }) };
    }),
  },
  "keys.removeRoles": {
    "the key lacks what the role granted": loses(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: (keyId) => ({ keyId, roles: [name] }) };
    }),
  },
  "keys.setRoles": {
    "the key lacks what its former role granted": loses(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: (keyId) => ({ keyId, roles: [] }) };
    }),
  },

  "apis.updateApi": {
    // A gate compares addresses only if its policy says where they are.
    "its keys are refused from an address that is not in the list": async ({ resources }) => {
      const { key, apiId } = await resources.key();
      const [{ api: before }, { api: after }] = [verified(key, "VALID"), verified(key, "FORBIDDEN")];
      return {
        body: () => ({ apiId, ipAllowList: ["192.0.2.1"] }),
        before: { ...(before && { api: before }) },
        after: () => [{ ...(after && { api: after }) }],
      };
    },
  },
  "apis.deleteApi": {
    "its keys are unknown": becomes("VALID", "NOT_FOUND", async ({ resources, apiId }) => {
      const { key } = await resources.key({ apiId });
      return { key, body: { apiId } };
    }),
  },

  "identities.updateIdentity": {
    "a lower limit of an identity holds its keys": becomes("VALID", "RATE_LIMITED", async (ground) => {
      const { key, externalId, ratelimits } = await keyOfLimitedIdentity(ground, 1_000_000);
      return { key, body: { identity: externalId, ratelimits } };
    }),
  },
  "identities.deleteIdentity": {
    "its limits hold its keys no longer": becomes("RATE_LIMITED", "VALID", async (ground) => {
      const { key, externalId } = await keyOfLimitedIdentity(ground, 1);
      return { key, body: { identity: externalId } };
    }),
  },

  "ratelimit.setOverride": {
    "the override decides": async (ground) => {
      const { override, rules, free, overridden } = await limitedKey(ground);
      return { body: () => override, rules, before: free, after: () => [overridden] };
    },
  },
  "ratelimit.deleteOverride": {
    "what is asked for decides": async (ground) => {
      const { override, rules, free, overridden } = await limitedKey(ground);
      await ground.resources.ask("ratelimit.setOverride", override);
      const { namespace, identifier } = override;
      return { body: () => ({ namespace, identifier }), rules, before: overridden, after: () => [free] };
    },
  },
  "ratelimit.deleteNamespace": {
    "its overrides decide nothing, and nothing can be limited in it": async (ground) => {
      const { namespace, override, rules, overridden, namespaceDeleted } = await limitedKey(ground);
      await ground.resources.ask("ratelimit.setOverride", override);
      return { body: () => ({ namespace }), rules, before: overridden, after: () => [namespaceDeleted] };
    },
  },

  "permissions.deletePermission": {
    "keys that held it lack it": loses(async () => ({
      key: { permissions: [SLUG] },
      change: () => ({ permission: SLUG }),
    })),
    "keys that held it through a role lack it": loses(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: () => ({ permission: SLUG }) };
    }),
  },
  "permissions.updateRole": {
    "its keys say the new name": async ({ resources, apiId }) => {
      const { name } = await resources.role([SLUG]);
      const { key } = await resources.key({ apiId, roles: [name] });
      const renamed = resources.name("renamed");
      const says = (role: string): Responses => ({
        api: { path: "keys.verifyKey", body: { key }, data: { roles: [role] } },
        sidecar: { key, status: 200, forwarded: { "x-postern-roles": role } },
      });
      return { body: () => ({ role: name, name: renamed }), before: says(name), after: () => [says(renamed)] };
    },
  },
  "permissions.deleteRole": {
    "its keys lack what it granted": loses(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: () => ({ role: name }) };
    }),
  },
  "permissions.setRolePermissions": {
    "its keys lack what it grants no longer": loses(async ({ resources }) => {
      const { name, roleId } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: () => ({ roleId, permissions: ["documents.write"] }) };
    }),
    "its keys have what it newly grants": gains(async ({ resources }) => {
      const { name, roleId } = await resources.role();
      return { key: { roles: [name] }, change: () => ({ roleId, permissions: [SLUG] }) };
    }),
  },

  "admin.updateRootKey": {
    "a root key that is disabled is refused": refusesRootKey((rootKeyId) => ({ rootKeyId, enabled: false })),
  },
  "admin.rotateRootKey": {
    "the old root key is refused when it ends at once": refusesRootKey((rootKeyId) => ({ rootKeyId, overlap: 0 })),
  },
  "admin.deleteRootKey": {
    "a revoked root key is refused": refusesRootKey((rootKeyId) => ({ rootKeyId })),
  },

  "managed.applyObject": {
    "a key has what the manifest of its role grants": async ({ resources, apiId }) => {
      const { name, body } = await appliedRole(resources, []);
      const { key } = await resources.key({ apiId, roles: [name] });
      return {
        body: () => ({ ...body, spec: { name, permissions: [SLUG] } }),
        rules: [{ permissions: SLUG }],
        before: { sidecar: { key, status: 403 } },
        after: () => [{ sidecar: { key, status: 200 } }],
      };
    },
    "the sidecar asks for what the policy asks for": async ({ resources, apiId }) => {
      const { key } = await resources.key({ apiId });
      return {
        body: () => policyBody(apiId, apiId, { rules: [{ permissions: SLUG }] }),
        before: { sidecar: { key, status: 200 } },
        after: () => [{ sidecar: { key, status: 403 } }],
      };
    },
  },
  "managed.deleteObject": {
    "a key loses what the manifest of its role granted": async ({ resources, apiId }) => {
      const { name, body } = await appliedRole(resources, [SLUG]);
      const { key } = await resources.key({ apiId, roles: [name] });
      return {
        body: () => ({ manager: body.manager, kind: body.kind, deletionPolicy: "Delete" }),
        rules: [{ permissions: SLUG }],
        before: { sidecar: { key, status: 200 } },
        after: () => [{ sidecar: { key, status: 403 } }],
      };
    },
  },
};

/** Changes without an observable effect at gates and other api-servers, with the reason. */
export const UNNOTICED: Readonly<Record<string, string>> = {
  "apis.createApi": "no key is in it yet",
  "identities.createIdentity": "no key has it yet",
  "permissions.createPermission": "no key has it yet",
  "permissions.updatePermission": "neither decides by its name or description, nor tells them; its slug is fixed",
  "permissions.createRole": "no key has it yet",
  "ratelimit.createNamespace": "nothing was counted in it yet, and a limit call would have made it",
  "admin.createWorkspace": "nothing is in it yet",
  "admin.updateWorkspace":
    "told by the tests of the command, whose function it calls; it would stop the tests beside it",
  "admin.updateQueryLimits": "no cache has what bounds queries: each query reads it",
  "admin.updateSettings": "no cache has what bounds queries: each query reads it",
  "admin.startImport": "no key is imported yet",
  "admin.deleteSession": "no cache has sessions: each request reads its own",
  "admin.createSignInLink": "nobody has used it yet",
  "admin.deleteSignInLink": "no cache has links: each sign-in reads its own",
  "admin.createRootKey": "an api-server reads a root key when it is sent for the first time, and a sidecar knows none",
};
