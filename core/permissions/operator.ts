/**
 * What the operator's root key must be allowed, and nothing else: a test compares it with the procedures that the operator calls.
 */
export const OPERATOR_PERMISSIONS: readonly string[] = [
  "api.*.create_api",
  "api.*.read_api",
  "api.*.update_api",
  "api.*.delete_api",
  "api.*.create_key",
  "api.*.read_key",
  "api.*.update_key",
  "api.*.delete_key",
  "ratelimit.*.create_namespace",
  "ratelimit.*.read_namespace",
  "ratelimit.*.delete_namespace",
  "ratelimit.*.set_override",
  "ratelimit.*.read_override",
  "ratelimit.*.delete_override",
  "rbac.*.create_role",
  "rbac.*.read_role",
  "rbac.*.update_role",
  "rbac.*.delete_role",
  "rbac.*.create_permission",
  "rbac.*.read_permission",
  "rbac.*.add_permission_to_role",
  "rbac.*.remove_permission_from_role",
];
