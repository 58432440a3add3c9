import { listWorkspaces, type WorkspaceRow } from "../../api-server/db/workspaces.ts";
import { type AnalyticsChange, changeAnalytics } from "../../api-server/domain/administration/analytics.ts";
import {
  ANALYTICS_SETTINGS,
  type AnalyticsSetting,
} from "../../api-server/domain/administration/analytics-settings.ts";
import { changeWorkspace, createWorkspace } from "../../api-server/domain/administration/workspaces.ts";
import type { AnalyticsSettings } from "../../api-server/domain/analytics/settings.ts";
import { QUOTA_MAX, workspaceNameProblem } from "../../core/workspaces/workspace.ts";
import { withDatabase, withWorkspace } from "../administration.ts";
import { defineCommand, type OptionRow, UsageError } from "../command.ts";
import { type Fields, instantText, listShape, objectShape } from "../fields.ts";
import { database, json, limit, namedWorkspace } from "../options.ts";
import { printList, printOne } from "../output.ts";
import { parseInteger, parseLimit, parseSwitch } from "../values.ts";

const quotaPerMinute = {
  type: "string",
  placeholder: "N|none",
  help: "maximum API requests per minute over all root keys of the workspace; 0 rejects every request",
} as const;

/** Parses a quota; returns `null` for unlimited. */
const parseQuota = (text: string): number | null =>
  text === "none" ? null : parseInteger("per-minute", text, { min: 0, max: QUOTA_MAX, or: "none" });

const workspaceFields: Fields<WorkspaceRow> = [
  { name: "workspaceId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name },
  {
    name: "enabled",
    title: "state",
    value: (row) => row.enabled,
    text: (row) => (row.enabled ? "enabled" : "disabled"),
  },
  { name: "quotaPerMinute", title: "quota", value: (row) => row.quota_per_minute, text: quotaText },
  { name: "createdAt", title: "created", value: (row) => row.created_at, text: (row) => instantText(row.created_at) },
];

function quotaText({ quota_per_minute: quota }: Pick<WorkspaceRow, "quota_per_minute">): string {
  return quota === null ? "none" : `${quota} per minute`;
}

export const workspaceCreate = defineCommand({
  name: "workspace create",
  description: "Workspaces are isolated from each other. Create the first root key with `rootkey create`.",
  options: {
    name: { type: "string", placeholder: "NAME", help: "unique name", required: true },
    "per-minute": { ...quotaPerMinute, default: "none" },
    ...database,
    json,
  },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const { name } = options;
    const problem = workspaceNameProblem(name);
    if (problem !== undefined) throw new UsageError(`--name: ${problem}`);
    const quota = parseQuota(options["per-minute"]);
    const row = await withDatabase(options, (administrator) =>
      createWorkspace(administrator, { name, quotaPerMinute: quota }),
    );
    if (row === undefined) throw new Error(`workspace ${name} already exists; set another --name`);
    printOne(io, options, { fields: workspaceFields, row });
    return 0;
  },
});

export const workspaceList = defineCommand({
  name: "workspace list",
  options: { limit, ...database, json },
  response: listShape("workspaces", workspaceFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const rows = await withDatabase(options, ({ db }) => listWorkspaces(db, { rowsMax: max + 1 }));
    printList(io, options, { resources: "workspaces", fields: workspaceFields, rows, max });
    return 0;
  },
});

export const workspaceEnable = defineCommand({
  name: "workspace enable",
  options: { workspace: namedWorkspace, ...database, json },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const row = await withWorkspace(options, (administrator, { id }) =>
      changeWorkspace(administrator, { workspaceId: id, enabled: true }),
    );
    const sentence = `workspace ${row.name} (${row.id}) is enabled`;
    printOne(io, options, { fields: workspaceFields, row, sentence });
    return 0;
  },
});

export const workspaceDisable = defineCommand({
  name: "workspace disable",
  description: "Root keys then get 403, keys verify as FORBIDDEN, and gates reject all requests. Nothing is deleted.",
  options: { workspace: namedWorkspace, ...database, json },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const row = await withWorkspace(options, (administrator, { id }) =>
      changeWorkspace(administrator, { workspaceId: id, enabled: false }),
    );
    const sentence = `workspace ${row.name} (${row.id}) is disabled: its root keys get 403, its keys verify as FORBIDDEN`;
    printOne(io, options, { fields: workspaceFields, row, sentence });
    return 0;
  },
});

/** Settings of a workspace that `workspace update` shows. */
interface WorkspaceSettings extends Pick<WorkspaceRow, "id" | "name" | "quota_per_minute"> {
  readonly settings: AnalyticsSettings;
}

const settingsFields: Fields<WorkspaceSettings> = [
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
    value: ({ settings }: WorkspaceSettings) => value(settings) / unit,
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
    "Omitted options keep their value. Without options, the command shows the current settings. Changes apply to the next request or query. API requests over the quota get 429; requests to guarded apps do not count. A longer retention does not restore deleted usage.",
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
  response: objectShape(settingsFields),
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
    printOne(io, options, { fields: settingsFields, row });
    return 0;
  },
});

/** Parses a number in the unit of the setting. `default` is stored as `null`. */
function readAnalyticsSetting({ option, min, max, unit }: AnalyticsSetting, text: string): number | null {
  return text === "default" ? null : parseInteger(option, text, { min, max, or: "default" }) * unit;
}
