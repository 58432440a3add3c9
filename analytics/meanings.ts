import type { AnalyticsOf, Bucket, PublicTable } from "./tables.ts";

/*
 * Short descriptions of the analytics tables and columns for query authors. tables.ts defines the tables; a test keeps both files
 * consistent.
 */

const COMMON: Readonly<Record<string, string>> = {
  workspace_id: "Id of your workspace.",
};

const OF_VERIFICATIONS: Readonly<Record<string, string>> = {
  ...COMMON,
  request_id: "Id of the verified request, as in its response and the logs.",
  key_space_id: "Key space, which has the keys of one API: keySpaceOf('api_…').",
  key_id: "Id of the key.",
  external_id: "Your id of the key's owner; empty without an owner.",
  outcome: "VALID, or the reason of the rejection.",
  tags: "Tags of the verification.",
  source: "sidecar for a gate, api for a call of keys.verifyKey.",
  app_id: "Id of the gate's policy; empty for the API.",
  region: "Region of the verifying process.",
  spent_credits: "Spent credits.",
  count: "Number of verifications.",
};

const OF_RATELIMITS: Readonly<Record<string, string>> = {
  ...COMMON,
  request_id: "Id of the request.",
  namespace_id: "Namespace of the limit.",
  identifier: "Identifier that the limit counts.",
  latency: "Duration of the decision, ms.",
  override_id: "Override that applied; empty without an override.",
  limit: "Units that a window allows.",
  remaining: "Remaining units after the check.",
  reset_at: "End of the window, Unix ms.",
  tokens: "Cost of the check.",
  total: "Number of checks.",
  total_tokens: "Cost of all checks.",
  passed_tokens: "Cost of the admitted checks.",
};

const TIME: Readonly<Record<Bucket | "raw", string>> = {
  raw: "Time of the event, Unix ms.",
  minute: "Start of the minute, UTC.",
  hour: "Start of the hour, UTC.",
  day: "Day, UTC.",
  month: "First day of the month, UTC.",
};

/** Returns the meaning of a column; `undefined` if the table does not have it. */
export function columnMeaning({ of, bucket, columns }: PublicTable, name: string): string | undefined {
  if (!Object.hasOwn(columns, name)) return undefined;
  if (name === "time") return TIME[bucket ?? "raw"];
  if (name === "passed") return bucket === undefined ? "Whether the check was admitted." : "Number of admitted checks.";
  return (of === "verifications" ? OF_VERIFICATIONS : OF_RATELIMITS)[name];
}

const ROWS: Readonly<Record<AnalyticsOf, string>> = {
  verifications: "verification of a key",
  ratelimits: "check of a rate limit",
};

export const tableMeaning = ({ of, bucket }: PublicTable): string =>
  bucket === undefined
    ? `One row for each ${ROWS[of]}.`
    : `One row for each ${bucket} and combination of the other columns.`;
