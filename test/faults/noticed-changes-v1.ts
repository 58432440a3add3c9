import type { Resources } from "../../api-server/test/resources.ts";
import {
  becomes,
  gains,
  keyOfLimitedIdentity,
  limitedKey,
  loses,
  type Noticed,
  SLUG,
  verified,
} from "./noticed-changes.ts";

/*
 * Observable effects of each v1 change, in the form of `noticed-changes.ts`. They are observed through v2, because both read the same
 * records.
 */

/** Returns the id of the permission with this slug and creates it if missing. */
async function permissionOf(resources: Resources, slug: string): Promise<string> {
  await resources.ask("permissions.createRole", { name: resources.name("role"), permissions: [slug] });
  return (await resources.ask("permissions.getPermission", { permission: slug })).id;
}

export const V1_NOTICED: Noticed = {
  // apis
  "v1/apis.deleteApi": {
    "its keys are unknown": becomes("VALID", "NOT_FOUND", async ({ resources, apiId }) => {
      const { key } = await resources.key({ apiId });
      return { key, body: { apiId } };
    }),
  },
  "v1/apis.deleteKeys": {
    "its keys are unknown": becomes("VALID", "NOT_FOUND", async ({ resources, apiId }) => {
      const { key } = await resources.key({ apiId });
      return { key, body: { apiId } };
    }),
  },
  // keys
  "v1/keys.createKey": {
    "the key is known": async ({ apiId }) => ({
      body: () => ({ apiId }),
      after: ({ key }) => [verified(key, "VALID")],
    }),
  },
  "v1/keys.updateKey": {
    "a key that is disabled is refused": becomes("VALID", "DISABLED", async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId });
      return { key, body: { keyId, enabled: false } };
    }),
  },
  "v1/keys.updateRemaining": {
    "a key without credits can be used again": becomes("USAGE_EXCEEDED", "VALID", async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId, credits: { remaining: 0 } });
      return { key, body: { keyId, op: "set", value: 100_000 } };
    }),
  },
  "v1/keys.deleteKey": {
    "the key is unknown": becomes("VALID", "NOT_FOUND", async ({ resources, apiId }) => {
      const { keyId, key } = await resources.key({ apiId });
      return { key, body: { keyId } };
    }),
  },
  "v1/keys.addPermissions": {
    "the key has it": gains(async () => ({
      key: {},
      change: (keyId) => ({ keyId, permissions: [{ name: SLUG, create: true }] }),
    })),
  },
  "v1/keys.removePermissions": {
    "the key lacks it": loses(async () => ({
      key: { permissions: [SLUG] },
      change: (keyId) => ({ keyId, permissions: [{ name: SLUG }] }),
    })),
  },
  "v1/keys.setPermissions": {
    "the key lacks what it is not given": loses(async () => ({
      key: { permissions: [SLUG] },
      change: (keyId) => ({ keyId, permissions: [{ name: "documents.write", create: true }] }),
    })),
  },
  "v1/keys.addRoles": {
    "the key has what the role grants": gains(async ({ resources }) => {
      const { roleId } = await resources.role([SLUG]);
      return { key: {}, change: (keyId) => ({ keyId, roles: [{ id: roleId }] }) };
    }),
  },
  "v1/keys.removeRoles": {
    "the key lacks what the role granted": loses(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: (keyId) => ({ keyId, roles: [{ name }] }) };
    }),
  },
  "v1/keys.setRoles": {
    "the key lacks what its former role granted": loses(async ({ resources }) => {
      const { name } = await resources.role([SLUG]);
      const other = await resources.role();
      return { key: { roles: [name] }, change: (keyId) => ({ keyId, roles: [{ id: other.roleId }] }) };
    }),
  },
  // ratelimits
  "v1/ratelimits.setOverride": {
    "the override decides": async (ground) => {
      const { namespace: namespaceName, override, rules, free, overridden } = await limitedKey(ground);
      const { identifier, limit, duration } = override;
      const body = () => ({ namespaceName, identifier, limit, duration });
      return { body, rules, before: free, after: () => [overridden] };
    },
  },
  "v1/ratelimits.deleteOverride": {
    "what is asked for decides": async (ground) => {
      const { namespace: namespaceName, override, rules, free, overridden } = await limitedKey(ground);
      await ground.resources.ask("ratelimit.setOverride", override);
      const body = () => ({ namespaceName, identifier: override.identifier });
      return { body, rules, before: overridden, after: () => [free] };
    },
  },
  // identities
  "v1/identities.updateIdentity": {
    "a lower limit of an identity holds its keys": becomes("VALID", "RATE_LIMITED", async (ground) => {
      const { key, externalId, ratelimits } = await keyOfLimitedIdentity(ground, 1_000_000);
      return { key, body: { externalId, ratelimits } };
    }),
  },
  "v1/identities.deleteIdentity": {
    "its limits hold its keys no longer": becomes("RATE_LIMITED", "VALID", async (ground) => {
      const { key, identityId } = await keyOfLimitedIdentity(ground, 1);
      return { key, body: { identityId } };
    }),
  },
  // permissions
  "v1/permissions.deletePermission": {
    "keys that held it lack it": loses(async ({ resources }) => {
      const permissionId = await permissionOf(resources, SLUG);
      return { key: { permissions: [SLUG] }, change: () => ({ permissionId }) };
    }),
  },
  "v1/permissions.deleteRole": {
    "its keys lack what it granted": loses(async ({ resources }) => {
      const { name, roleId } = await resources.role([SLUG]);
      return { key: { roles: [name] }, change: () => ({ roleId }) };
    }),
  },
  // migrations
  "v1/migrations.createKeys": {
    "the key is known": async ({ resources, apiId }) => {
      const plaintext = resources.name("secret");
      return { body: () => [{ apiId, plaintext }], after: () => [verified(plaintext, "VALID")] };
    },
  },
  "v1/migrations.enqueueKeys": {
    "the key is known": async ({ resources, apiId }) => {
      const plaintext = resources.name("secret");
      const keys = [{ plaintext }];
      const body = () => ({ migrationId: resources.name("migration"), apiId, keys });
      return { body, after: () => [verified(plaintext, "VALID")] };
    },
  },
  // unversioned paths
  "v1/keys": {
    "the key is known": async ({ apiId }) => ({
      body: () => ({ apiId }),
      after: ({ key }) => [verified(key, "VALID")],
    }),
  },
};

export const V1_UNNOTICED: Readonly<Record<string, string>> = {
  // apis
  "v1/apis.createApi": "no key is in it yet",

  // identities
  "v1/identities.createIdentity": "no key has it yet",

  // permissions
  "v1/permissions.createPermission": "no key has it yet",
  "v1/permissions.createRole": "no key has it yet",
};
