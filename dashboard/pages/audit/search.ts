import { choiceIn, textsIn } from "../../search-params.ts";

/* URL parameters of the audit log: its filters, and the open row. */

export const RANGES = { "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000, "30d": 2_592_000_000 } as const;
export type RangeName = keyof typeof RANGES;

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

/** Reads the filters from the URL and omits invalid ones. */
export const readAuditSearch = (search: Readonly<Record<string, unknown>>): AuditSearch => ({
  ...textsIn(search, "event", "actorId", "targetId", "requestId", "row"),
  ...choiceIn(search, "range", Object.keys(RANGES) as RangeName[]),
});

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
  ...["signInLink.create", "signInLink.delete", "session.create", "session.delete", "session.refuse"],
];
