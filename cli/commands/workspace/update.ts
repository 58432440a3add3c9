import type { WorkspaceRow } from "../../../api-server/db/workspaces.ts";
import { type AnalyticsChange, changeAnalytics } from "../../../api-server/domain/administration/analytics.ts";
import {
  ANALYTICS_SETTINGS,
  type AnalyticsSetting,
} from "../../../api-server/domain/administration/analytics-settings.ts";
import { changeWorkspace } from "../../../api-server/domain/administration/workspaces.ts";
import type { AnalyticsSettings } from "../../../api-server/domain/analytics/settings.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand, type OptionRow } from "../../command.ts";
import { type Fields, objectShape } from "../../fields.ts";
import { database, json, namedWorkspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseInteger, parseSwitch } from "../../values.ts";
import { parseQuota, quotaPerMinute, quotaText } from "./fields.ts";

interface Shown extends Pick<WorkspaceRow, "id" | "name" | "quota_per_minute"> {
  readonly settings: AnalyticsSettings;
}

const fields: Fields<Shown> = [
  { name: "workspaceId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name },
  { name: "quotaPerMinute", title: "quota", value: (row) => row.quota_per_minute, text: quotaText },
  {
    name: "analytics",
    title: "analytics",
    value: ({ settings }) => settings.enabled,
    text: ({ settings }) => (settings.enabled ? "on" : "off"),
  },
  ...ANALYTICS_SETTINGS.map(({ option, name, unit, value }) => ({
    name,
    title: option,
    value: ({ settings }: Shown) => value(settings) / unit,
  })),
];

/** Options of the command, one per setting. */
const settingOptions: Readonly<Record<string, OptionRow>> = Object.fromEntries(
  ANALYTICS_SETTINGS.map(({ option, help, byDefault, min, max }): [string, OptionRow] => [
    option,
    { type: "string", placeholder: "N|default", help: `${help}; ${min} to ${max}, ${byDefault} by default` },
  ]),
);

export const workspaceUpdate = defineCommand({
  name: "workspace update",
  description:
    "Omitted options keep their value; without options, shows the current settings. Takes effect for the next request or query. API requests over the quota get 429; requests to guarded apps do not count. A longer retention does not restore deleted usage.",
  options: {
    workspace: namedWorkspace,
    "per-minute": quotaPerMinute,
    analytics: {
      type: "string",
      placeholder: "on|off",
      help: "access to usage queries; usage is counted in either case",
    },
    ...settingOptions,
    ...database,
    json,
  },
  response: objectShape(fields),
  run: async (options, io) => {
    const given: Readonly<Record<string, string | boolean | undefined>> = options;
    const change: AnalyticsChange = Object.assign(
      {},
      options.analytics === undefined ? {} : { enabled: parseSwitch("analytics", options.analytics) },
      ...ANALYTICS_SETTINGS.map((setting) => {
        const text = given[setting.option];
        return typeof text === "string" ? { [setting.column]: readAnalyticsSetting(setting, text) } : {};
      }),
    );
    const quota = options["per-minute"];
    const quotaChange = quota === undefined ? {} : { quotaPerMinute: parseQuota(quota) };
    const row = await withWorkspace(options, async (administrator, { id }) => ({
      ...(await changeWorkspace(administrator, { workspaceId: id, ...quotaChange })),
      settings: await changeAnalytics(administrator, { workspaceId: id, change }),
    }));
    printOne(io, options, { fields, row });
    return 0;
  },
});

/** Parses a number in the unit of the setting. `default` is stored as `null`. */
function readAnalyticsSetting({ option, min, max, unit }: AnalyticsSetting, text: string): number | null {
  return text === "default" ? null : parseInteger(option, text, { min, max, or: "default" }) * unit;
}
