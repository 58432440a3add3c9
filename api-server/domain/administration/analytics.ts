import { type AnalyticsSettingsRow, findAnalyticsSettings, putAnalyticsSettings } from "../../db/analytics-limits.ts";
import { changeOf } from "../../db/audit-change.ts";
import { inTransaction } from "../../db/transaction.ts";
import { lockWorkspace } from "../../db/workspaces.ts";
import { type AnalyticsSettings, completeSettings, NOTHING_SET } from "../analytics/settings.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/** Longest retention of usage that can be set, in days. It exceeds the default. */
export const RETENTION_DAYS_MAX = 3_650;

/** Changed settings; `null` restores a default. */
export type AnalyticsChange = Partial<AnalyticsSettingsRow>;

/**
 * Changes the analytics limits of a workspace, and returns the active values. Writes nothing if nothing changes. Throws if the workspace
 * does not exist.
 */
export async function changeAnalytics(
  administrator: Administrator,
  { workspaceId, change }: { workspaceId: string; change: AnalyticsChange },
): Promise<AnalyticsSettings> {
  return inTransaction(administrator, async (tx) => {
    const workspace = await lockWorkspace(tx, { workspaceId });
    if (workspace === undefined) throw new Error(`workspace ${workspaceId} was deleted meanwhile`);
    const before = (await findAnalyticsSettings(tx, { workspaceId })) ?? NOTHING_SET;
    const row = { ...before, ...change };
    const changed = (Object.keys(row) as (keyof AnalyticsSettingsRow)[]).filter((name) => row[name] !== before[name]);
    if (changed.length === 0) return completeSettings(before);
    await putAnalyticsSettings(tx, { workspaceId, row });
    await insertAdministration(tx, administrator, workspaceId, [
      {
        event: "workspace.update",
        description: `Updated workspace ${workspaceId}: ${changed.map((name) => `analytics ${name} ${row[name] ?? "default"}`).join(", ")}`,
        targets: [{ type: "workspace", id: workspaceId, name: workspace.name }],
        ...changeOf(fieldsOf(before), fieldsOf(row)),
      },
    ]);
    return completeSettings(row);
  });
}

/** Returns the fields for the audit log, such as `rowsMax` for `rows_max`; `null` means the default. */
const fieldsOf = ({ enabled, ...bounds }: AnalyticsSettingsRow) => ({
  analytics: enabled,
  ...Object.fromEntries(Object.entries(bounds).map(([column, value]) => [camelCase(column), value])),
});

const camelCase = (column: string): string => column.replace(/_(.)/g, (_line, letter: string) => letter.toUpperCase());
