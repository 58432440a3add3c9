import { makeId } from "../../../core/ids.ts";
import type { AuditEvent } from "../../store/audit.ts";
import { changeOf } from "../../store/audit-change.ts";
import { inTransaction } from "../../store/transaction.ts";
import {
  findWorkspace,
  insertWorkspace,
  lockWorkspace,
  updateWorkspace,
  type WorkspaceRow,
} from "../../store/workspaces.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/** The most requests per minute, far above what one installation serves. */
export const QUOTA_MAX = 1_000_000_000;

/**
 * The form of a Kubernetes label value, because manifests name workspaces in a label. Underscores are allowed inside, but not a name
 * that begins like an id, because an id wins over an equal name.
 */
export const WORKSPACE_NAME = /^(?!ws_)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** What is wrong with a workspace's name, as a text for the person who typed it; undefined when it is valid. */
export function workspaceNameProblem(name: string): string | undefined {
  if (WORKSPACE_NAME.test(name)) return undefined;
  return "a name has 1 to 63 letters, digits, dots, dashes and underscores, begins and ends with a letter or digit, and not with ws_";
}

/** Creates a workspace. Returns undefined when one with this name exists. */
export async function createWorkspace(
  administrator: Administrator,
  { name, quotaPerMinute }: { name: string; quotaPerMinute: number | null },
): Promise<WorkspaceRow | undefined> {
  return inTransaction(administrator, async (tx) => {
    const id = makeId("workspace", administrator.randomBytes(16));
    if (!(await insertWorkspace(tx, { id, name, createdAt: administrator.nowMs() }))) return undefined;
    if (quotaPerMinute !== null) await updateWorkspace(tx, { workspaceId: id, enabled: true, quotaPerMinute });
    await insertAdministration(tx, administrator, id, [event("create", `Created workspace ${id}`, { id, name })]);
    return findWorkspace(tx, { workspace: id });
  });
}

/** Changes the given settings and returns the workspace afterwards. Writes nothing when nothing changes. Throws when there is no such workspace. */
export async function changeWorkspace(
  administrator: Administrator,
  { workspaceId, ...change }: { workspaceId: string; enabled?: boolean; quotaPerMinute?: number | null },
): Promise<WorkspaceRow> {
  return inTransaction(administrator, async (tx) => {
    const before = await lockWorkspace(tx, { workspaceId });
    if (before === undefined) throw new Error(`workspace ${workspaceId} was deleted meanwhile`);
    const { enabled = before.enabled, quotaPerMinute = before.quota_per_minute } = change;
    if (enabled === before.enabled && quotaPerMinute === before.quota_per_minute) return before;
    await updateWorkspace(tx, { workspaceId, enabled, quotaPerMinute });
    const what = [
      ...(enabled === before.enabled ? [] : [enabled ? "enabled" : "disabled"]),
      ...(quotaPerMinute === before.quota_per_minute ? [] : [`quota ${quotaPerMinute ?? "none"}`]),
    ];
    await insertAdministration(tx, administrator, workspaceId, [
      {
        ...event("update", `Updated workspace ${workspaceId}: ${what.join(", ")}`, before),
        ...changeOf({ enabled: before.enabled, quotaPerMinute: before.quota_per_minute }, { enabled, quotaPerMinute }),
      },
    ]);
    return { ...before, enabled, quota_per_minute: quotaPerMinute };
  });
}

const event = (verb: string, description: string, { id, name }: { id: string; name: string }): AuditEvent => ({
  event: `workspace.${verb}`,
  description,
  targets: [{ type: "workspace", id, name }],
});
