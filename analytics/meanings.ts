import type { AnalyticsOf, Bucket, PublicTable } from "./tables.ts";

/*
 * Short descriptions of the analytics tables and columns for query authors. tables.ts defines the tables; a test keeps both files
 * consistent.
 */

const COMMON: Readonly<Record<string, string>> = {
  workspace_id: "Your workspace.",
};

const OF_VERIFICATIONS: Readonly<Record<string, string>> = {
  ...COMMON,
  request_id: "The request that was verified, as its answer and the logs name it.",
  key_space_id: "The key space: the keys of one API, keySpaceOf('api_…').",
  key_id: "The key.",
  external_id: "The owner of the key, as you name it; empty for a key without one.",
  outcome: "VALID, or why the key was refused.",
  tags: "The tags of the verification.",
  source: "Who verified: sidecar for a gate, api for a call of keys.verifyKey.",
  app_id: "The id of the policy whose gate verified; empty for the API.",
  region: "Where it was verified.",
  spent_credits: "Credits that were spent.",
  count: "How many verifications.",
};

const OF_RATELIMITS: Readonly<Record<string, string>> = {
  ...COMMON,
  request_id: "The request that asked.",
  namespace_id: "The namespace of the limit.",
  identifier: "Whom the limit counts.",
  latency: "How long deciding took, ms.",
  override_id: "The override that set the limit; empty without one.",
  limit: "How much a window allows.",
  remaining: "What was left of it afterwards.",
  reset_at: "When the window ends, Unix ms.",
  tokens: "What the check costs.",
  total: "How many checks.",
  total_tokens: "What all checks cost.",
  passed_tokens: "What those that passed cost.",
};

const TIME: Readonly<Record<Bucket | "raw", string>> = {
  raw: "When, Unix ms.",
  minute: "The start of the minute, UTC.",
  hour: "The start of the hour, UTC.",
  day: "The day, UTC.",
  month: "The first day of the month, UTC.",
};

/** Returns `undefined` if the table does not have the column. */
export function columnMeaning({ of, bucket, columns }: PublicTable, name: string): string | undefined {
  if (!Object.hasOwn(columns, name)) return undefined;
  if (name === "time") return TIME[bucket ?? "raw"];
  if (name === "passed") return bucket === undefined ? "Whether it was within the limit." : "How many were within it.";
  return (of === "verifications" ? OF_VERIFICATIONS : OF_RATELIMITS)[name];
}

const ROWS: Readonly<Record<AnalyticsOf, string>> = {
  verifications: "verification of a key",
  ratelimits: "check of a rate limit",
};

export const tableMeaning = ({ of, bucket }: PublicTable): string =>
  bucket === undefined
    ? `One row for each ${ROWS[of]}.`
    : `How often, per ${bucket}: a row for each ${bucket} and combination of the other columns.`;
