import type {
  ApiRecord,
  IdentityRecord,
  KeyRecord,
  RatelimitRecord,
  RoleRecord,
  WorkspaceRecord,
} from "../../core/records.ts";
import { KeyView } from "../../core/verification/key-view.ts";

/*
 * Records of a key and its references for tests. No two ids have the same end, and ids and names of roles and permissions sort differently,
 * so that a wrong order or a misplaced id fails a test.
 */

/** Returns a key without limits and credits, with an identity and two roles. */
export const aKeyRecord = (changes: Partial<KeyRecord> = {}): KeyRecord => ({
  keyId: "key_7",
  workspaceId: "ws_2",
  apiId: "api_9",
  keySpaceId: "ks_4",
  enabled: true,
  identityId: "id_5",
  roleIds: ["role_8", "role_3"],
  permissions: ["orders.read", "carts.read"],
  ratelimits: [],
  limited: false,
  ...changes,
});

/** Returns a limit of 10 per minute without autoApply. */
export const aRatelimitRecord = (name: string, changes: Partial<RatelimitRecord> = {}): RatelimitRecord => ({
  id: `rl_${name}`,
  name,
  limit: 10,
  durationMs: 60_000,
  autoApply: false,
  ...changes,
});

export const anApiRecord = (changes: Partial<ApiRecord> = {}): ApiRecord => ({
  id: "api_9",
  name: "orders",
  ...changes,
});

export const anIdentityRecord = (changes: Partial<IdentityRecord> = {}): IdentityRecord => ({
  id: "id_5",
  externalId: "alice",
  ratelimits: [],
  ...changes,
});

/** Sorted by id, which differs from the order of names. */
export const TWO_ROLES: readonly RoleRecord[] = [
  { id: "role_3", name: "writer", permissions: ["invoices.write", "invoices.read"] },
  { id: "role_8", name: "auditor", permissions: ["invoices.read", "audit.*"] },
];

/** Assembles a key with its records. `api` and `identity` may be `undefined`: deleted or missing. */
export function aKeyView(
  parts: {
    key?: Partial<KeyRecord>;
    workspace?: Partial<WorkspaceRecord>;
    api?: ApiRecord | undefined;
    identity?: IdentityRecord | undefined;
    roles?: readonly RoleRecord[];
  } = {},
): KeyView {
  const { roles = TWO_ROLES } = parts;
  const identity = "identity" in parts ? parts.identity : anIdentityRecord();
  const { identityId: _, ...key } = aKeyRecord({ roleIds: roles.map(({ id }) => id).reverse() });
  return new KeyView({
    key: { ...key, ...(identity === undefined ? {} : { identityId: identity.id }), ...parts.key },
    workspace: { id: key.workspaceId, enabled: true, ...parts.workspace },
    api: "api" in parts ? parts.api : anApiRecord(),
    identity,
    roles,
  });
}
