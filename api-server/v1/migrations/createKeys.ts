import * as z from "zod";
import { type ApiRow, findApi } from "../../db/apis.ts";
import { inTransaction } from "../../db/transaction.ts";
import { importFullKeys, prepareImport } from "../../domain/keys/import-full-keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { LegacyRatelimit } from "../keys/legacy-limit.ts";
import { ExternalId } from "../keys/legacy-owner.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, KeyId } from "../schemas.ts";
import { checkItem, itemFields, toForeignKey } from "./item.ts";

const Item = z.object({
  apiId: ApiId,
  ...itemFields,
  externalId: ExternalId.optional(),
  ratelimit: LegacyRatelimit.required({ refillRate: true, refillInterval: true })
    .omit({ duration: true })
    .optional()
    .describe("Rate limit against which each verification counts."),
});

type Item = z.output<typeof Item>;

const Body = z.array(Item).max(100);
type Body = z.output<typeof Body>;

const ResponseBody = z.object({ keyIds: z.array(KeyId).describe("Ids of the keys, in the order of the request.") });

const required = { createKey: onApi("create_key") };

export const createKeys = defineV1Procedure({
  path: "migrations.createKeys",
  method: "POST",
  successor: "keys.migrateKeys",
  effect: "change",
  summary: "Import keys that were issued elsewhere",
  description:
    "Imports keys by their secrets or hashes, so that their holders can continue to use them. Imports either all keys or none.",
  permissions: required,
  errors: ["api_not_found", "precondition_failed", "key_already_exists"],
  input: Body,
  check: (items) => {
    for (const [index, item] of items.entries()) checkItem(item, besides(item), placeOf(index));
  },
  response: ResponseBody,
  handle,
});

const besides = ({ externalId, ratelimit }: Item) => ({
  externalId,
  ratelimit: ratelimit && { limit: ratelimit.limit, refillInterval: ratelimit.refillInterval },
});

const placeOf = (index: number): string => `body[${index}]`;

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { body, caller, deps } = call;
  const apiIds = [...new Set(body.map(({ apiId }) => apiId))];
  for (const apiId of apiIds) call.require(required.createKey, apiId);
  const apis = new Map<string, ApiRow>();
  for (const apiId of apiIds) {
    const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
    if (api === undefined) throw apiNotFound(apiId);
    apis.set(apiId, api);
  }
  const items = body.map((item, index) => {
    const api = apis.get(item.apiId);
    if (api === undefined) throw apiNotFound(item.apiId);
    return { api, key: toForeignKey(item, besides(item), placeOf(index)) };
  });
  const keyIds = await inTransaction(deps, async (tx) => {
    const keys = items.map(({ api, key }) => prepareImport(call, api, key));
    await importFullKeys(tx, call, keys);
    return keys.map(({ id }) => id);
  });
  return { keyIds };
}
