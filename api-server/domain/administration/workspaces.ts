import { makeId } from "../../../core/ids.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import type { AuditEvent } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { inTransaction } from "../../db/transaction.ts";
import {
  findWorkspace,
  insertWorkspace,
  lockWorkspace,
  updateWorkspace,
  type WorkspaceRow,
} from "../../db/workspaces.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/** Creates a workspace. Returns `undefined` if a workspace with this name exists. */
export async function createWorkspace(
  administrator: Administrator,
  { name, quotaPerMinute }: { name: string; quotaPerMinute: number | null },
): Promise<WorkspaceRow | undefined> {
  return inTransaction(administrator, async (tx) => {
    const id = makeId("workspace", administrator.randomBytes(16));
    if (!(await insertWorkspace(tx, { id, name, createdAt: administrator.nowMs() }))) return undefined;
    if (quotaPerMinute !== null) await updateWorkspace(tx, { workspaceId: id, name, enabled: true, quotaPerMinute });
    await insertAdministration(tx, administrator, id, [event("create", `Created workspace ${id}`, { id, name })]);
    return findWorkspace(tx, { workspace: id });
  });
}

export interface WorkspaceChange {
  readonly name?: string;
  readonly enabled?: boolean;
  /** Quota in requests per minute; `null` removes the quota. */
  readonly quotaPerMinute?: number | null;
}

/**
 * Changes the given settings and returns the changed workspace. Writes nothing if nothing changes. `mayChange` is called with the locked
 * workspace, and throws to reject the change. Throws if the workspace does not exist. Throws a violation of `workspaces_name_key` if
 * another workspace has the name.
 */
export async function changeWorkspace(
  administrator: Administrator,
  { workspaceId, ...change }: { workspaceId: string } & WorkspaceChange,
  mayChange: (tx: Queryable, before: WorkspaceRow, after: WorkspaceRow) => Promise<void> = async () => undefined,
): Promise<WorkspaceRow> {
  return inTransaction(administrator, async (tx) => {
    const before = await lockWorkspace(tx, { workspaceId });
    if (before === undefined) throw new Error(`workspace ${workspaceId} was deleted meanwhile`);
    const { name = before.name, enabled = before.enabled, quotaPerMinute = before.quota_per_minute } = change;
    const after = { ...before, name, enabled, quota_per_minute: quotaPerMinute };
    const changed = changeOf(fieldsOf(before), fieldsOf(after));
    if (changed.after === undefined) return before;
    await mayChange(tx, before, after);
    await updateWorkspace(tx, { workspaceId, name, enabled, quotaPerMinute });
    const what = [
      ...(name === before.name ? [] : [`name ${name}`]),
      ...(enabled === before.enabled ? [] : [enabled ? "enabled" : "disabled"]),
      ...(quotaPerMinute === before.quota_per_minute ? [] : [`quota ${quotaPerMinute ?? "none"}`]),
    ];
    await insertAdministration(tx, administrator, workspaceId, [
      { ...event("update", `Updated workspace ${workspaceId}: ${what.join(", ")}`, after), ...changed },
    ]);
    return after;
  });
}

/** Returns the fields of a workspace for the audit log. */
const fieldsOf = ({ name, enabled, quota_per_minute: quotaPerMinute }: WorkspaceRow) => ({
  name,
  enabled,
  quotaPerMinute,
});

const event = (verb: string, description: string, { id, name }: { id: string; name: string }): AuditEvent => ({
  event: `workspace.${verb}`,
  description,
  targets: [{ type: "workspace", id, name }],
});
