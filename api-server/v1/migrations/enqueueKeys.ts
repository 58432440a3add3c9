import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { queueKeys } from "../../domain/keys/queue-keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { LegacyRatelimit } from "../keys/legacy-limit.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, Empty } from "../schemas.ts";
import { checkItem, itemFields, toForeignKey } from "./item.ts";

const Item = z.object({
  ...itemFields,
  ratelimit: LegacyRatelimit.required({ duration: true })
    .optional()
    .describe("Rate limit against which each verification counts."),
});

type Item = z.output<typeof Item>;

const Body = z.object({
  migrationId: z
    .string()
    .min(1)
    .max(255)
    .describe("Name of the migration. If a key cannot be created, the server logs this name with the failure.")
    .meta({ examples: ["migration_2026_05"] }),
  apiId: ApiId,
  keys: z.array(Item).max(100).describe("Keys to import, at most 100; each is created in its own transaction."),
});
type Body = z.output<typeof Body>;

const required = {
  createKey: onApi("create_key"),
  encryptKey: onApi("encrypt_key", "with a `plaintext`"),
};

export const enqueueKeys = defineV1Procedure({
  path: "migrations.enqueueKeys",
  method: "POST",
  successor: "keys.migrateKeys",
  effect: "change",
  status: 202,
  summary: "Import keys in the background",
  description:
    "Accepts keys by their secrets or hashes, and creates each in the background. A key with a missing role or permission, or with an existing hash, is retried for 30 minutes and then dropped, which only the server log reports.",
  permissions: required,
  errors: ["api_not_found", "key_queue_full"],
  input: Body,
  check: ({ keys }) => {
    for (const [index, item] of keys.entries()) checkItem(item, besides(item), placeOf(index));
  },
  response: Empty,
  handle,
});

const besides = ({ ratelimit }: Item) => ({ ratelimit });
const placeOf = (index: number): string => `body.keys[${index}]`;

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { migrationId, apiId } = body;
  call.require(required.createKey, apiId);
  if (body.keys.some(({ plaintext }) => plaintext !== undefined)) call.require(required.encryptKey, apiId);
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  const keys = body.keys.map((item, index) => toForeignKey(item, besides(item), placeOf(index)));
  await queueKeys(call, { api, migrationId, keys });
  return {};
}
