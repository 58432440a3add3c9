import * as z from "zod";
import type { CountOrder, UsageCount } from "../../../analytics/counts.ts";
import { findApi } from "../../db/apis.ts";
import { findIdentityIdByExternalId } from "../../db/identities.ts";
import { COUNT_ERRORS, countVerifications } from "../../domain/analytics/verification-counts.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound, identityNotFound, invalidField } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, Instant, LIST_MAX, unixMs } from "../schemas.ts";
import { GROUPS, readGroupBy, splitCommas } from "./group-by.ts";

const DAY_MS = 86_400_000;

const ORDER_BY = [
  "time",
  "valid",
  "notFound",
  "forbidden",
  "usageExceeded",
  "rateLimited",
  "unauthorized",
  "disabled",
  "insufficientPermissions",
  "expired",
  "total",
] as const;
type OrderBy = (typeof ORDER_BY)[number];

const Query = z.object({
  apiId: ApiId,
  externalId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Counts only verifications of this identity's keys.")
    .meta({ examples: ["user_123"] }),
  keyId: z
    .array(z.string().max(25_600))
    .max(LIST_MAX)
    .optional()
    .describe(
      "Counts only verifications of these keys, and sums their counts. Repeat the parameter, or separate ids with commas.",
    )
    .meta({ examples: [["key_4fGh7Jk2LmN8pQrS"]] }),
  tag: z
    .array(z.string().max(512))
    .max(LIST_MAX)
    .optional()
    .describe("Counts only verifications that have all of these tags.")
    .meta({ examples: [["path=/orders"]] }),
  start: Instant.nullish().describe(
    "Start of the period, Unix ms, rounded to the hour. Default: 24 hours before `end`.",
  ),
  end: Instant.nullish().describe("End of the period, Unix ms, rounded to the hour. Default: now."),
  groupBy: z
    .array(z.string().max(255))
    .max(LIST_MAX)
    .optional()
    .describe(
      `Groups by one or more of ${GROUPS.map((group) => `\`${group}\``).join(", ")}. Repeat the parameter, or separate values with commas. Of several units of time, the coarsest applies.`,
    )
    .meta({ examples: [["day"]] }),
  limit: z
    .int()
    .min(1)
    .optional()
    .describe("Maximum number of datapoints.")
    .meta({ examples: [100] }),
  orderBy: z.enum(ORDER_BY).optional().describe("Sort order of the datapoints."),
  order: z.enum(["asc", "desc"]).default("asc").describe("Sort direction."),
});
type Query = z.output<typeof Query>;

const count = (description: string) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [12] });

const Datapoint = z.object({
  valid: count("Verifications of valid keys."),
  notFound: count("Always 0, because such a verification belongs to no key."),
  forbidden: count("Verifications rejected because of the client address."),
  usageExceeded: count("Verifications rejected because the key had too few credits."),
  rateLimited: count("Verifications rejected by a rate limit."),
  unauthorized: count("Always 0, because such a verification belongs to no key."),
  disabled: count("Verifications of disabled keys."),
  insufficientPermissions: count("Verifications of keys that lacked a permission."),
  expired: count("Verifications of expired keys."),
  total: count("Number of all verifications."),
  time: unixMs("Start of the time slice; only if usage is grouped by a unit of time.").optional(),
  keyId: z
    .string()
    .optional()
    .describe("Id of the key; only if usage is grouped by `key`.")
    .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  identity: z
    .object({
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
    .describe("Identity of the keys; only if usage is grouped by `identity`."),
  tags: z
    .array(z.string())
    .optional()
    .describe("All tags of the verifications, sorted; only if usage is grouped by `tags`.")
    .meta({ examples: [["path=/orders"]] }),
  tag: z
    .string()
    .optional()
    .describe("Tag of the verifications; only if usage is grouped by `tag`.")
    .meta({ examples: ["path=/orders"] }),
});
type Datapoint = z.output<typeof Datapoint>;

const required = { readApi: onApi("read_api") };

export const getVerifications = defineV1Procedure({
  path: "analytics.getVerifications",
  method: "GET",
  successor: "analytics.getVerifications",
  effect: "read",
  summary: "Count the verifications of an API's keys",
  description:
    "Counts all verifications, or groups them by time, key, identity or tags. If they are grouped only by time, the result includes datapoints without verifications.",
  permissions: required,
  errors: ["api_not_found", "identity_not_found", ...COUNT_ERRORS],
  input: Query,
  check,
  response: z.array(Datapoint),
  handle,
});

function check({ start, end, groupBy = [], orderBy }: Query): void {
  const { slice } = readGroupBy(groupBy);
  if (typeof start === "number" && typeof end === "number") checkInterval(start, end);
  if (orderBy === "time" && slice === undefined) {
    throw invalidField("body.orderBy", "sorting by time requires a time unit in groupBy: hour, day or month");
  }
}

function checkInterval(startMs: number, endMs: number): void {
  if (startMs >= endMs) throw invalidField("body.start", `expected a time before end, ${endMs}, got ${startMs}`);
}

async function handle(call: Call<Query, typeof required>): Promise<Datapoint[]> {
  const { body, caller, deps } = call;
  const { apiId, externalId, keyId = [], tag = [], limit, orderBy, order } = body;
  const { workspaceId } = caller;
  const endMs = body.end ?? deps.nowMs();
  const startMs = body.start ?? endMs - DAY_MS;
  checkInterval(startMs, endMs);
  call.require(required.readApi, apiId);
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  const keyIds = splitCommas(keyId);
  const counted = await countVerifications(deps, {
    workspaceId,
    keySpaceIds: [api.key_space_id],
    keyIds: keyIds.length === 0 ? undefined : keyIds,
    identityId: externalId === undefined ? undefined : await identityOf(call, externalId),
    tags: tag,
    startMs,
    endMs,
    ...readGroupBy(body.groupBy ?? []),
    order: orderBy && { by: CODES[orderBy], descending: order === "desc" },
    limit,
  });
  return counted.map(toDatapoint);
}

async function identityOf(
  { caller, deps }: Pick<Call<unknown>, "caller" | "deps">,
  externalId: string,
): Promise<string> {
  const id = await findIdentityIdByExternalId(deps.db, { workspaceId: caller.workspaceId, externalId });
  if (id === undefined) throw identityNotFound(externalId);
  return id;
}

/**
 * For each value of `orderBy`, the code whose count determines the order. Sorting by `unauthorized` or `notFound` has no effect, because no
 * key has these outcomes.
 */
const CODES: Readonly<Record<OrderBy, CountOrder["by"]>> = {
  time: "time",
  valid: "VALID",
  notFound: "NOT_FOUND",
  forbidden: "FORBIDDEN",
  usageExceeded: "USAGE_EXCEEDED",
  rateLimited: "RATE_LIMITED",
  unauthorized: "NOT_FOUND",
  disabled: "DISABLED",
  insufficientPermissions: "INSUFFICIENT_PERMISSIONS",
  expired: "EXPIRED",
  total: "total",
};

const toDatapoint = ({ timeMs, keyId, identity, tags, tag, byCode, total }: UsageCount): Datapoint => ({
  valid: byCode.VALID,
  notFound: byCode.NOT_FOUND,
  forbidden: byCode.FORBIDDEN,
  usageExceeded: byCode.USAGE_EXCEEDED,
  rateLimited: byCode.RATE_LIMITED,
  unauthorized: 0,
  disabled: byCode.DISABLED,
  insufficientPermissions: byCode.INSUFFICIENT_PERMISSIONS,
  expired: byCode.EXPIRED,
  total,
  ...(timeMs === undefined ? {} : { time: timeMs }),
  ...(keyId === undefined ? {} : { keyId }),
  ...(identity === undefined ? {} : { identity }),
  ...(tags === undefined ? {} : { tags: [...tags] }),
  ...(tag === undefined ? {} : { tag }),
});
