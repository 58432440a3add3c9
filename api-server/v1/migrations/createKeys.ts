import * as z from "zod";
import { hashKey } from "../../../core/keys/key-string.ts";
import { importWholeKeys, type WholeKeyToImport } from "../../domain/keys/import-whole-keys.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { apiNotFound } from "../../domain/refusals/not-found.ts";
import { onApi } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { type ApiRow, findApi } from "../../store/apis.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Environment, Expires, KeyName, Remaining, RoleName, Slug } from "../keys/key-fields.ts";
import { LegacyRefill, toCredits } from "../keys/legacy-credits.ts";
import { checkLegacyRatelimit, LegacyRatelimit, toRatelimit } from "../keys/legacy-limit.ts";
import { ExternalId, OwnerId, ownerOfNew } from "../keys/legacy-owner.ts";
import { ApiId, KeyId, Meta } from "../schemas.ts";

/** Of a plaintext, when nothing else is given. */
const START_CHARACTERS = 4;

const Item = z.object({
  apiId: ApiId,
  plaintext: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe("The secret. Stored hashed, and encrypted where the API keeps recoverable keys. It wins over `hash`.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  hash: z
    .object({
      value: z
        .string()
        .min(1)
        .max(255)
        .describe("SHA-256 of the whole secret, in base64.")
        .meta({ examples: ["uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="] }),
      variant: z
        .enum(["sha256_base64"])
        .describe("How it was made.")
        .meta({ examples: ["sha256_base64"] }),
    })
    .optional()
    .describe("Required without `plaintext`."),
  start: z
    .string()
    .max(255)
    .optional()
    .describe("The part of the secret that may be shown. Of a plaintext its first four characters, else empty.")
    .meta({ examples: ["prod_5Kd3"] }),
  prefix: z
    .string()
    .max(8)
    .optional()
    .describe("Has no effect.")
    .meta({ examples: ["prod"] }),
  name: KeyName.optional(),
  externalId: ExternalId.optional(),
  ownerId: OwnerId.optional(),
  meta: Meta.optional(),
  roles: z.array(RoleName).max(100).optional().describe("Names of roles that exist."),
  permissions: z.array(Slug).max(1000).optional().describe("Slugs of permissions that exist."),
  expires: Expires.optional(),
  remaining: Remaining.min(1).optional().describe("Credits; unlimited when it is left out."),
  refill: LegacyRefill.optional(),
  ratelimit: LegacyRatelimit.required({ refillRate: true, refillInterval: true })
    .omit({ duration: true })
    .optional()
    .describe("The rate limit of each verification."),
  enabled: z.boolean().default(true).describe("A disabled key verifies as DISABLED."),
  environment: Environment.optional(),
});
type Item = z.output<typeof Item>;

const Body = z.array(Item).max(100);
type Body = z.output<typeof Body>;

const Answer = z.object({ keyIds: z.array(KeyId).describe("Ids of the keys, in the order of the request.") });

const needed = { createKey: onApi("create_key") };

export const createKeys = defineV1Procedure({
  path: "migrations.createKeys",
  method: "POST",
  successor: "keys.migrateKeys",
  effect: "change",
  summary: "Import keys that were issued elsewhere",
  description:
    "Stores keys by their secrets or by hashes of these, so that their holders can go on using them. All or nothing.",
  permissions: needed,
  errors: ["api_not_found", "precondition_failed", "key_already_exists"],
  input: Body,
  check,
  answer: Answer,
  handle,
});

function check(items: Body): void {
  for (const [index, { plaintext, hash, remaining, refill, ratelimit }] of items.entries()) {
    const at = `body[${index}]`;
    if (plaintext === undefined && hash === undefined)
      throw invalidField(`${at}.hash`, "is required without `plaintext`");
    toCredits({ remaining, refill }, `${at}.refill`);
    checkLegacyRatelimit(ratelimit, `${at}.ratelimit`);
  }
}

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Answer>> {
  const { body, caller, deps } = call;
  const apiIds = [...new Set(body.map(({ apiId }) => apiId))];
  for (const apiId of apiIds) call.require(needed.createKey, apiId);
  const apis = new Map<string, ApiRow>();
  for (const apiId of apiIds) {
    const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
    if (api === undefined) throw apiNotFound(apiId);
    apis.set(apiId, api);
  }
  const keys = body.map((item, index) => toKey(item, index, apis));
  return { keyIds: await inTransaction(deps, (tx) => importWholeKeys(tx, call, keys)) };
}

function toKey(item: Item, index: number, apis: ReadonlyMap<string, ApiRow>): WholeKeyToImport {
  const { plaintext, hash, start, name, meta, roles = [], permissions = [], ratelimit } = item;
  const api = apis.get(item.apiId);
  if (api === undefined) throw apiNotFound(item.apiId);
  checkMeta(meta, `body[${index}].meta`);
  return {
    api,
    hash: plaintext === undefined ? (hash?.value ?? "") : hashKey(plaintext),
    start: start ?? plaintext?.slice(0, START_CHARACTERS) ?? "",
    plaintext,
    name: name === "" ? undefined : name,
    externalId: ownerOfNew(item),
    environment: item.environment,
    meta,
    roles,
    permissions,
    expires: item.expires,
    enabled: item.enabled,
    credits: toCredits(item),
    ratelimits: ratelimit === undefined ? [] : [toRatelimit(ratelimit)],
  };
}
