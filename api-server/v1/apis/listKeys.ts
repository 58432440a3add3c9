import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { findIdentityIdByExternalId } from "../../db/identities.ts";
import { type KeyPage, listKeyIds, listKeyIdsOfIdentity, listKeyIdsOfOwner, listKeysThatFit } from "../../db/keys.ts";
import { countKeysOfApi } from "../../db/keys-of-api.ts";
import { nextCursor, PAGE_BYTES_MAX } from "../../domain/lists/pages.ts";
import { onApi, refusedAsUnauthorized } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { describeKeys, KeyObject } from "../key-object.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, Cursor, PageLimit, Total } from "../schemas.ts";

const owner = z.string().min(1);

const Query = z.object({
  apiId: ApiId,
  limit: PageLimit,
  cursor: Cursor.optional(),
  externalId: owner
    .optional()
    .describe("Returns only keys of this identity.")
    .meta({ examples: ["user_123"] }),
  ownerId: owner
    .optional()
    .describe("Returns only keys of this owner. Ignored if `externalId` is given.")
    .meta({ examples: ["user_123"] }),
  decrypt: z.boolean().default(false).describe("Whether to return the secrets of recoverable keys."),
  revalidateKeysCache: z.boolean().default(false).describe("Has no effect: the list is always read from the database."),
});
type Query = z.output<typeof Query>;

const ResponseBody = z.object({
  keys: z.array(KeyObject).describe("Keys on this page."),
  cursor: Cursor.optional(),
  total: Total.describe("Number of live keys of the API, regardless of the owner filter."),
});

const required = {
  readKey: onApi("read_key"),
  readApi: onApi("read_api"),
  decryptKey: refusedAsUnauthorized(onApi("decrypt_key", "with `decrypt`")),
};

export const listKeys = defineV1Procedure({
  path: "apis.listKeys",
  method: "GET",
  successor: "apis.listKeys",
  effect: "read",
  summary: "List the keys of an API",
  description: "Lists keys in the order of their ids, including disabled and expired ones. A page ends early at 4 MiB.",
  permissions: required,
  errors: ["api_not_found"],
  input: Query,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Query, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { body, caller, deps } = call;
  const { apiId, limit, cursor = "", decrypt } = body;
  const { workspaceId } = caller;
  call.require(required.readKey, apiId);
  call.require(required.readApi, apiId);
  if (decrypt) call.require(required.decryptKey, apiId);
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  const ids = await listIds(call, { workspaceId, apiId, cursor, rowsMax: limit + 1 });
  if (ids === undefined) return { keys: [], total: 0 };
  const [rows, total] = await Promise.all([
    listKeysThatFit(deps.db, { workspaceId, keyIds: ids.slice(0, limit), bytesMax: PAGE_BYTES_MAX }),
    countKeysOfApi(deps.db, { workspaceId, apiId }),
  ]);
  // If key encryption is disabled for the API, secrets are omitted, as they are for keys that are not recoverable.
  const vault = decrypt && api.key_encryption ? deps.keyVault : undefined;
  const keys = await describeKeys(deps, workspaceId, rows, { vault, inList: true });
  const next = nextCursor(ids, rows, limit);
  return { keys, total, ...(next === undefined ? {} : { cursor: next }) };
}

/** Returns the ids of the page and, if there is a next page, its first id. Returns `undefined` for an unknown externalId. */
async function listIds({ body, deps }: Call<Query, typeof required>, page: KeyPage): Promise<string[] | undefined> {
  const { externalId, ownerId } = body;
  const { workspaceId } = page;
  if (externalId !== undefined) {
    const identityId = await findIdentityIdByExternalId(deps.db, { workspaceId, externalId });
    return identityId === undefined ? undefined : listKeyIdsOfIdentity(deps.db, { ...page, identityId });
  }
  return ownerId === undefined ? listKeyIds(deps.db, page) : listKeyIdsOfOwner(deps.db, { ...page, ownerId });
}
