/* Address parameters of the audit log: its filters, and the open row. */

export const RANGES = { "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000, "30d": 2_592_000_000 } as const;
export type RangeName = keyof typeof RANGES;

const TEXTS = ["event", "actorId", "targetId", "requestId", "row"] as const;

export interface AuditSearch {
  readonly event?: string;
  readonly actorId?: string;
  readonly targetId?: string;
  readonly requestId?: string;
  /** Time range; all stored entries if omitted. */
  readonly range?: RangeName;
  /** Id of the row whose details are open. */
  readonly row?: string;
}

/**
 * Reads the filters from the address. Anyone may have written the address, so values that are too long, not text, or not a valid range are
 * omitted.
 */
export function readAuditSearch(search: Readonly<Record<string, unknown>>): AuditSearch {
  const texts = TEXTS.flatMap((name) => {
    const value = search[name];
    return typeof value === "string" && value !== "" && value.length <= 255 ? [[name, value] as const] : [];
  });
  const { range } = search;
  const known = typeof range === "string" && Object.hasOwn(RANGES, range) ? { range: range as RangeName } : {};
  return { ...Object.fromEntries(texts), ...known };
}

/** The audit events of api-v2.md section 20. */
export const EVENTS: readonly string[] = [
  ...["api.create", "api.update", "api.delete"],
  ...["key.create", "key.reroll", "key.update", "key.delete", "key.enqueue", "key.give_up"],
  ...["authorization.connect_permission_and_key", "authorization.disconnect_permission_and_key"],
  ...["authorization.connect_role_and_key", "authorization.disconnect_role_and_key"],
  ...["authorization.connect_role_and_permission", "authorization.disconnect_role_and_permissions"],
  ...["permission.create", "permission.update", "permission.delete"],
  ...["role.create", "role.update", "role.delete"],
  ...["identity.create", "identity.update", "identity.delete"],
  ...["ratelimit.create", "ratelimit.update", "ratelimit.delete"],
  ...["ratelimit.set_override", "ratelimit.delete_override", "ratelimit.success", "ratelimit.denied"],
  ...["ratelimitNamespace.create", "ratelimitNamespace.update", "ratelimitNamespace.delete"],
  ...["policy.create", "policy.update", "policy.delete"],
  ...["workspace.create", "workspace.update", "rootKey.create", "rootKey.update", "rootKey.delete", "migration.create"],
];
