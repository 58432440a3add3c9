import * as z from "zod";
import type { Slice, Target, UsageCount } from "../../../analytics/counts.ts";
import { Code } from "../../../core/verification/codes.ts";
import { findApi } from "../../db/apis.ts";
import { keySpacesOf } from "../../domain/analytics/scope.ts";
import { COUNT_ERRORS, countVerifications } from "../../domain/analytics/verification-counts.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound, invalidField } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ShortApiId } from "../schemas.ts";

type GroupBy = "hour" | "day" | "key" | "identity";

const GROUPS: Readonly<Record<GroupBy, { readonly slice: Slice | undefined; readonly by: readonly Target[] }>> = {
  hour: { slice: "hour", by: [] },
  day: { slice: "day", by: [] },
  key: { slice: undefined, by: ["key"] },
  identity: { slice: undefined, by: ["identity"] },
};

const instant = (what: string, example: number) =>
  z
    .int()
    .min(0)
    .max(8_640_000_000_000_000)
    .describe(what)
    .meta({ examples: [example] });

const Body = z.strictObject({
  from: instant("Start of the range, Unix ms, extended to the full hour.", 1_767_222_000_000),
  to: instant("Exclusive end of the range, Unix ms, extended to the full hour.", 1_767_225_600_000),
  groupBy: z
    .enum(["hour", "day", "key", "identity"])
    .optional()
    .describe(
      "What each row of the result stands for. Hours and days are in UTC. Default: one row for the complete range.",
    ),
  apiId: ShortApiId.optional().describe(
    "Counts only keys of this API. Default: keys of all APIs that the caller is allowed to read.",
  ),
  limit: z
    .int()
    .min(1)
    .max(10_000)
    .default(100)
    .describe(
      "Maximum number of rows if usage is grouped by `key` or `identity`; the most used are returned. Hours and days are not limited.",
    )
    .meta({ examples: [100] }),
});
type Body = z.output<typeof Body>;

const count = (description: string) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [12] });

const outcomes = Object.fromEntries(
  Code.options.map((code) => [code, count(`Verifications with the code \`${code}\`.`)]),
) as Record<Code, z.ZodInt>;

const Row = z.strictObject({
  time: z
    .int()
    .optional()
    .describe("Start of the hour or day, Unix ms; only if usage is grouped by `hour` or `day`.")
    .meta({ examples: [1_767_222_000_000] }),
  keyId: z
    .string()
    .optional()
    .describe("Id of the key; only if usage is grouped by `key`.")
    .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  identity: z
    .strictObject({
      id: z
        .string()
        .describe("Id of the identity.")
        .meta({ examples: ["id_7nPq0Rs3Tu6Vw9Xy"] }),
      externalId: z
        .string()
        .describe("External id of the identity in your system.")
        .meta({ examples: ["user_123"] }),
    })
    .optional()
    .describe("Owner of the keys; only if usage is grouped by `identity`."),
  total: count("Number of all verifications, including those with codes that `outcomes` does not list."),
  outcomes: z.strictObject(outcomes).describe("Number of verifications by code."),
});
type Row = z.input<typeof Row>;

const Data = z.strictObject({
  rows: z
    .array(Row)
    .describe(
      "Hours and days in chronological order, including those without verifications; or keys and identities with verifications, most used first.",
    ),
  hasMore: z.boolean().describe("Whether keys or identities were omitted because of `limit`."),
});
type Data = z.input<typeof Data>;

const required = { readAnalytics: onApi("read_analytics") };

export const getUsage = defineProcedure({
  path: "admin.getUsage",
  effect: "read",
  summary: "Count verifications by time, key or identity",
  description:
    "Reads hourly and daily counts, and does not count against the quota of usage queries. For other evaluations, use `analytics.getVerifications`.",
  permissions: required,
  errors: ["api_not_found", ...COUNT_ERRORS],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { from, to, groupBy, limit } = body;
  const keySpaceIds = await readableKeySpaces(call);
  if (from >= to) throw invalidField("body.to", "must be after from");
  const { slice, by } = groupBy === undefined ? { slice: undefined, by: [] } : GROUPS[groupBy];
  // Reads one extra row. If it exists, the result has more rows than `limit`.
  const rowsMax = by.length === 0 ? undefined : limit + 1;
  const counted = await countVerifications(deps, {
    workspaceId: caller.workspaceId,
    keySpaceIds,
    keyIds: undefined,
    identityId: undefined,
    tags: [],
    startMs: from,
    endMs: to - 1,
    slice,
    by,
    order: undefined,
    limit: rowsMax,
  });
  const hasMore = rowsMax !== undefined && counted.length === rowsMax;
  return { rows: (hasMore ? counted.slice(0, limit) : counted).map(toRow), hasMore };
}

/**
 * Returns the key spaces whose verifications are counted; `undefined` for all.
 * @throws PublicError 404 and 403, in this order, for a single API; 403 if the caller is not allowed to read the usage of any API.
 */
async function readableKeySpaces(call: Call<Body, typeof required>): Promise<readonly string[] | undefined> {
  const { body, caller, deps } = call;
  const { apiId } = body;
  const { workspaceId } = caller;
  if (apiId === undefined) {
    const ids = call.idsHeld(required.readAnalytics);
    if (ids.length === 0) call.require(required.readAnalytics);
    return keySpacesOf(deps.db, { workspaceId, ids });
  }
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  call.require(required.readAnalytics, apiId);
  return [api.key_space_id];
}

const toRow = ({ timeMs, keyId, identity, total, byCode }: UsageCount): Row => ({
  ...(timeMs === undefined ? {} : { time: timeMs }),
  ...(keyId === undefined ? {} : { keyId }),
  ...(identity === undefined ? {} : { identity }),
  total,
  outcomes: byCode,
});
