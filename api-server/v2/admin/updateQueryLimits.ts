import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { type AnalyticsChange, changeAnalytics } from "../../domain/administration/analytics.ts";
import { ANALYTICS_SETTINGS, type AnalyticsSetting } from "../../domain/administration/analytics-settings.ts";
import { onInstallation } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { activeSettings, Settings } from "./settings-schemas.ts";

const queryLimit = ({ help, min, max, byDefault }: AnalyticsSetting) =>
  z
    .int()
    .min(min)
    .max(max)
    .nullable()
    .optional()
    .describe(`${help[0]?.toUpperCase()}${help.slice(1)}; null for the default, ${byDefault}.`)
    .meta({ examples: [byDefault] });

const Body = z.strictObject(
  Object.fromEntries(ANALYTICS_SETTINGS.map((setting) => [setting.name, queryLimit(setting)])),
);
type Body = z.output<typeof Body>;

// Requires a permission for the installation, because only its administrators can set the limits of a workspace.
const required = { updateWorkspace: onInstallation("update_workspace") };

export const updateQueryLimits = defineProcedure({
  path: "admin.updateQueryLimits",
  effect: "change",
  summary: "Set the limits of a workspace's usage queries",
  description:
    "Changes the query limits and the retention of the caller's workspace. Omitted members keep their value. A longer retention does not restore deleted usage.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Settings,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Settings> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(required.updateWorkspace);
  await changeAnalytics(administratorOf(call), { workspaceId, change: changeOf(body) });
  return activeSettings(deps.db, workspaceId);
}

/** Returns the requested change in its stored form, in which `null` means the default. */
const changeOf = (body: Body): AnalyticsChange =>
  Object.assign(
    {},
    ...ANALYTICS_SETTINGS.map(({ name, column, unit }) => {
      const value = body[name];
      return value === undefined ? {} : { [column]: value === null ? null : value * unit };
    }),
  );
