import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { listApisOfKeys, listKeyIdsOfOwner } from "../../db/keys.ts";
import { COUNT_ERRORS, countDays } from "../../domain/analytics/verification-counts.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { invalidField, keyNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Instant, KeyId, unixMs } from "../schemas.ts";

const DAY_MS = 86_400_000;
const KEYS_MAX = 10_000;

const Query = z.object({
  keyId: KeyId.optional(),
  ownerId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Counts verifications of all keys of this owner, unless `keyId` is given.")
    .meta({ examples: ["user_123"] }),
  start: Instant.optional().describe("Start of the period, Unix ms, rounded to the hour. Default: 24 hours ago."),
  end: Instant.optional().describe("End of the period, Unix ms, rounded to the hour. Default: now."),
  granularity: z.enum(["day"]).default("day").describe("Length of the time steps. Only UTC days are supported."),
});
type Query = z.output<typeof Query>;

const count = (description: string) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [12] });

const ResponseBody = z.object({
  verifications: z
    .array(
      z.object({
        time: unixMs("Start of the day."),
        success: count("Verifications of valid keys."),
        rateLimited: count("Verifications rejected by a rate limit."),
        usageExceeded: count("Verifications rejected because the key had too few credits."),
      }),
    )
    .describe("Counts per day; days without any of these outcomes are omitted."),
});
type ResponseBody = z.output<typeof ResponseBody>;

const required = { readKey: onApi("read_key") };

export const getVerifications = defineV1Procedure({
  path: "keys.getVerifications",
  method: "GET",
  successor: "analytics.getVerifications",
  effect: "read",
  summary: "Count the verifications of keys by day",
  description:
    "Counts the verifications of one key, or of all keys of an owner. The root key must be allowed to read keys of each API.",
  permissions: required,
  errors: ["key_not_found", "precondition_failed", ...COUNT_ERRORS],
  input: Query,
  check,
  response: ResponseBody,
  handle,
});

function check({ keyId, ownerId }: Query): void {
  if (keyId === undefined && ownerId === undefined)
    throw invalidField("body.keyId", "expected keyId or ownerId, got neither");
}

async function handle(call: Call<Query, typeof required>): Promise<ResponseBody> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const keyIds = await keysOf(call);
  const apiIds = await listApisOfKeys(deps.db, { workspaceId, keyIds });
  if (apiIds.length === 0) throw keyNotFound(body.keyId ?? `of ${body.ownerId}`);
  for (const apiId of apiIds) call.require(required.readKey, apiId);
  const nowMs = deps.nowMs();
  const { start = nowMs - DAY_MS, end = nowMs } = body;
  const days = await countDays(deps, { workspaceId, keyIds, startMs: start, endMs: end });
  return {
    verifications: days
      .map(({ timeMs = 0, byCode }) => ({
        time: timeMs,
        success: byCode.VALID,
        rateLimited: byCode.RATE_LIMITED,
        usageExceeded: byCode.USAGE_EXCEEDED,
      }))
      .filter(({ success, rateLimited, usageExceeded }) => success + rateLimited + usageExceeded > 0),
  };
}

async function keysOf({ body, caller, deps }: Call<Query, typeof required>): Promise<readonly string[]> {
  const { keyId, ownerId = "" } = body;
  if (keyId !== undefined) return [keyId];
  const page = { workspaceId: caller.workspaceId, ownerId, cursor: "", rowsMax: KEYS_MAX + 1 };
  const keyIds = await listKeyIdsOfOwner(deps.db, page);
  if (keyIds.length <= KEYS_MAX) return keyIds;
  throw new PublicError(
    "precondition_failed",
    `The owner has more than ${KEYS_MAX} keys. Use analytics.getVerifications of v2.`,
  );
}
