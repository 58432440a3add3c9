import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { findIdentityIdByExternalId } from "../../db/identities.ts";
import { type KeyPage, listKeyIds, listKeyIdsOfIdentity, listKeysThatFit } from "../../db/keys.ts";
import { requireKeyEncryption } from "../../domain/keys/key-encryption.ts";
import { nextCursor, PAGE_BYTES_MAX } from "../../domain/lists/pages.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { describeKeys } from "../key-reply.ts";
import { Cursor, KeyOut, PageLimit } from "../schemas.ts";

const Body = z.strictObject({
  apiId: z
    .string()
    .min(1)
    .describe("Id of the API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  limit: PageLimit,
  cursor: Cursor.optional(),
  externalId: z
    .string()
    .min(1)
    .optional()
    .describe("Returns only keys of this identity.")
    .meta({ examples: ["user_123"] }),
  decrypt: z.boolean().default(false).describe("Whether to return the secrets of recoverable keys."),
  revalidateKeysCache: z.boolean().default(false).describe("Has no effect: the list is always read from the database."),
});
type Body = z.output<typeof Body>;

const required = {
  readKey: onApi("read_key"),
  readApi: onApi("read_api"),
  decryptKey: onApi("decrypt_key", "with `decrypt`"),
};

export const listKeys = defineListProcedure({
  path: "apis.listKeys",
  effect: "read",
  summary: "List the keys of an API",
  description:
    "Lists keys in the order of their ids, including disabled and expired ones, but not deleted ones. A page ends early if its keys would exceed 4 MiB in total.",
  permissions: required,
  errors: ["api_not_found", "precondition_failed"],
  body: Body,
  item: KeyOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<KeyOut>> {
  const { body, caller, deps } = call;
  const { apiId, limit, cursor = "", externalId } = body;
  const { workspaceId } = caller;
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  call.require(required.readKey, apiId);
  call.require(required.readApi, apiId);
  const vault = body.decrypt
    ? requireKeyEncryption(call, required.decryptKey, { apiId, isEnabled: api.key_encryption })
    : undefined;
  // Reads one extra id. If it exists, there is a next page, which starts with this id.
  const ids = await listIds({ workspaceId, apiId, cursor, rowsMax: limit + 1 }, externalId, deps);
  const rows = await listKeysThatFit(deps.db, { workspaceId, keyIds: ids.slice(0, limit), bytesMax: PAGE_BYTES_MAX });
  return { items: await describeKeys(deps, workspaceId, rows, vault), cursor: nextCursor(ids, rows, limit) };
}

async function listIds(page: KeyPage, externalId: string | undefined, { db }: Call<Body>["deps"]): Promise<string[]> {
  if (externalId === undefined) return listKeyIds(db, page);
  const identityId = await findIdentityIdByExternalId(db, { workspaceId: page.workspaceId, externalId });
  return identityId === undefined ? [] : listKeyIdsOfIdentity(db, { ...page, identityId });
}
