import * as z from "zod";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findWorkspace } from "../../db/workspaces.ts";
import { ANALYTICS_SETTINGS } from "../../domain/administration/analytics-settings.ts";
import { analyticsSettingsOf } from "../../domain/analytics/settings.ts";
import { WorkspaceOut } from "./workspace-schemas.ts";

/*
 * Response of `admin.getSettings`, `admin.updateSettings` and `admin.updateQueryLimits`: the settings that `postern workspace update` can
 * change. They have the same names as in the JSON output of that command.
 */

export const Settings = WorkspaceOut.omit({ createdAt: true }).extend({
  analytics: z.boolean().describe("Whether usage of the workspace can be queried. Usage is counted in either case."),
  bounds: z
    .array(
      z.strictObject({
        name: z
          .string()
          .describe("Name of the corresponding member of `admin.updateQueryLimits`.")
          .meta({ examples: ["queriesPerHour"] }),
        about: z
          .string()
          .describe("Description of the limit.")
          .meta({ examples: ["queries per hour; 0 rejects every query"] }),
        value: z
          .number()
          .describe("Active value.")
          .meta({ examples: [1000] }),
        byDefault: z
          .number()
          .describe("Default, which applies if no value is set.")
          .meta({ examples: [1000] }),
        min: z
          .int()
          .describe("Minimum value.")
          .meta({ examples: [0] }),
        max: z
          .int()
          .describe("Maximum value.")
          .meta({ examples: [1_000_000] }),
      }),
    )
    .describe("Limits of usage queries, and the retention of usage data."),
});
export type Settings = z.output<typeof Settings>;

/** Reads the active settings of a workspace. */
export async function activeSettings(db: Queryable, workspaceId: string): Promise<Settings> {
  const workspace = await findWorkspace(db, { workspace: workspaceId });
  if (workspace === undefined) throw new Error(`the workspace ${workspaceId} vanished during a call`);
  const active = await analyticsSettingsOf(db, workspaceId);
  return {
    workspaceId,
    name: workspace.name,
    enabled: workspace.enabled,
    quotaPerMinute: workspace.quota_per_minute,
    analytics: active.enabled,
    bounds: ANALYTICS_SETTINGS.map(({ name, help, byDefault, min, max, unit, value }) => ({
      ...{ name, about: help, byDefault, min, max },
      value: value(active) / unit,
    })),
  };
}
