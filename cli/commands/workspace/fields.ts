import type { WorkspaceRow } from "../../../api-server/db/workspaces.ts";
import { QUOTA_MAX } from "../../../core/workspaces/workspace.ts";
import { type Fields, instantText } from "../../fields.ts";
import { parseInteger } from "../../values.ts";

export const quotaPerMinute = {
  type: "string",
  placeholder: "N|none",
  help: "maximum API requests per minute over all root keys of the workspace; 0 rejects every request",
} as const;

/** Parses a quota; returns `null` for unlimited. */
export const parseQuota = (text: string): number | null =>
  text === "none" ? null : parseInteger("per-minute", text, { min: 0, max: QUOTA_MAX, or: "none" });

export const workspaceFields: Fields<WorkspaceRow> = [
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

export function quotaText({ quota_per_minute: quota }: Pick<WorkspaceRow, "quota_per_minute">): string {
  return quota === null ? "none" : `${quota} per minute`;
}
