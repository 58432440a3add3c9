/*
 * Permissions of root keys: tuples `<type>.<id>.<action>`, compared as whole strings. A procedure requires a tree of AND and OR
 * over exact strings. Patterns are never matched, so a grant such as `api.*.*` grants nothing.
 */

/** One exact tuple, a choice of several, or several that are all needed. */
export type Requirement =
  | string
  | { readonly anyOf: readonly Requirement[] }
  | { readonly allOf: readonly Requirement[] };

export const anyOf = (...requirements: Requirement[]): Requirement => ({ anyOf: requirements });
export const allOf = (...requirements: Requirement[]): Requirement => ({ allOf: requirements });

/**
 * Returns undefined when the requirement is satisfied. Otherwise returns what is missing, for the detail of a 403: all
 * alternatives joined with "or"; of several requirements, the first that fails. Never names what the root key holds.
 */
export function missingPermission(requirement: Requirement, held: ReadonlySet<string>): string | undefined {
  if (typeof requirement === "string") return held.has(requirement) ? undefined : requirement;
  if ("allOf" in requirement) {
    for (const part of requirement.allOf) {
      const missing = missingPermission(part, held);
      if (missing !== undefined) return missing;
    }
    return undefined;
  }
  const alternatives: string[] = [];
  for (const part of requirement.anyOf) {
    const missing = missingPermission(part, held);
    if (missing === undefined) return undefined;
    alternatives.push(missing);
  }
  return alternatives.join(" or ");
}

const onType = (type: string, action: string, id: string | undefined): Requirement =>
  id === undefined ? `${type}.*.${action}` : anyOf(`${type}.*.${action}`, `${type}.${id}.${action}`);

/** `A(x)` of api-v2.md section 1. Without an id, only the `*` tuple satisfies it. */
export const apiPermission = (action: string, apiId?: string): Requirement => onType("api", action, apiId);
/** `L(x)` of api-v2.md section 1. */
export const ratelimitPermission = (action: string, namespaceId?: string): Requirement =>
  onType("ratelimit", action, namespaceId);
/** `R(x)` of api-v2.md section 1. There is no form with an id. */
export const rbacPermission = (action: string): Requirement => onType("rbac", action, undefined);
/** `I(x)` of api-v2.md section 1. The form with an id exists only for reading. */
export const identityPermission = (action: string, identityId?: string): Requirement =>
  onType("identity", action, identityId);

/** Whether the action is held for anything of the type: `api.*.verify_key`, or the same with any one id. */
export function holdsForSome(
  { type, action }: { type: "api" | "ratelimit" | "identity"; action: string },
  held: ReadonlySet<string>,
): boolean {
  if (held.has(`${type}.*.${action}`)) return true;
  const head = `${type}.`;
  const tail = `.${action}`;
  for (const tuple of held) {
    if (!tuple.startsWith(head) || !tuple.endsWith(tail)) continue;
    // The id between them is one non-empty segment: `api..verify_key` and `api.a.b.verify_key` are not valid tuples.
    const id = tuple.slice(head.length, tuple.length - tail.length);
    if (/^[A-Za-z0-9_]+$/.test(id)) return true;
  }
  return false;
}

const ACTIONS = {
  api: [
    "create_api",
    "read_api",
    "update_api",
    "delete_api",
    "create_key",
    "read_key",
    "update_key",
    "delete_key",
    "verify_key",
    "encrypt_key",
    "decrypt_key",
    "read_analytics",
  ],
  ratelimit: [
    "create_namespace",
    "read_namespace",
    "update_namespace",
    "delete_namespace",
    "limit",
    "set_override",
    "read_override",
    "delete_override",
    "list_overrides",
    "read_analytics",
  ],
  rbac: [
    "create_permission",
    "read_permission",
    "update_permission",
    "delete_permission",
    "create_role",
    "read_role",
    "update_role",
    "delete_role",
    "add_permission_to_key",
    "remove_permission_from_key",
    "add_role_to_key",
    "remove_role_from_key",
    "add_permission_to_role",
    "remove_permission_from_role",
  ],
  identity: ["create_identity", "read_identity", "update_identity", "delete_identity"],
} as const;

/** Every `*` tuple of this version, including those that no procedure requires yet. A bootstrap root key holds them all. */
export const ALL_GRANTS: readonly string[] = Object.entries(ACTIONS).flatMap(([type, actions]) =>
  actions.map((action) => `${type}.*.${action}`),
);

/**
 * Returns undefined when `tuple` is a permission that a root key of this version can use. Otherwise returns what is wrong with it,
 * as a text for the person who typed it. The id is not looked up, because its object may be created later.
 */
export function rootKeyPermissionProblem(tuple: string): string | undefined {
  const parts = tuple.split(".");
  const [type = "", id = "", action = ""] = parts;
  if (parts.length !== 3) return "expected <type>.<id or *>.<action>";
  if (!Object.hasOwn(ACTIONS, type)) return `expected one of ${Object.keys(ACTIONS).join(", ")} before the first dot`;
  const actions: readonly string[] = ACTIONS[type as keyof typeof ACTIONS];
  if (!actions.includes(action)) return `expected one of ${actions.join(", ")} after the second dot`;
  if (id !== "*" && !/^[A-Za-z0-9_]{1,255}$/.test(id)) return "expected * or an id between the dots";
  return undefined;
}
