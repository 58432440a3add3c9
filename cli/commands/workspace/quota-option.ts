import { QUOTA_MAX } from "../../../core/workspaces/quota.ts";
import { parseWhole } from "../../values.ts";

export const quotaPerMinute = {
  type: "string",
  placeholder: "N|none",
  help: "requests to the API per minute, over all its root keys; 0 refuses every one",
} as const;

/** null means unlimited. */
export const parseQuota = (text: string): number | null =>
  text === "none" ? null : parseWhole("per-minute", text, { min: 0, max: QUOTA_MAX, or: "none" });
