import * as z from "zod";
import { allOf, apiPermission } from "../../../core/permissions/root-key.ts";
import { requireKeyEncryption } from "../../domain/key-encryption.ts";
import { apiNotFound } from "../../domain/not-found.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { findApi } from "../../store/apis.ts";
import { findIdentityIdByExternalId } from "../../store/identities.ts";
import { type KeyPage, type KeyRow, listKeys as listKeyRows, listKeysOfIdentity } from "../../store/keys.ts";
import { describeKeys } from "../key-reply.ts";
import { onApi } from "../needed-permissions.ts";
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
    .describe("Only the keys of this identity.")
    .meta({ examples: ["user_123"] }),
  decrypt: z.boolean().default(false).describe("Whether to give the secrets of recoverable keys."),
  revalidateKeysCache: z
    .boolean()
    .default(false)
    .describe("Without effect: the list is always read from the database."),
});
type Body = z.output<typeof Body>;

export const listKeys = defineListProcedure({
  path: "apis.listKeys",
  summary: "List the keys of an API",
  description: "In the order of their ids. Deleted keys are left out, disabled and expired ones are not.",
  permissions: [onApi("read_key"), onApi("read_api"), onApi("decrypt_key", "with `decrypt`")],
  errors: ["api_not_found", "precondition_failed"],
  body: Body,
  item: KeyOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body>): Promise<Page<KeyOut>> {
  const { body, caller, deps } = call;
  const { apiId, limit, cursor = "", externalId } = body;
  const { workspaceId } = caller;
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  call.require(allOf(apiPermission("read_key", apiId), apiPermission("read_api", apiId)));
  const vault = body.decrypt
    ? requireKeyEncryption(call, "decrypt_key", { apiId, isEnabled: api.key_encryption })
    : undefined;
  // One row more than is shown: it tells that there is a next page, and where that begins.
  const rows = await readPage({ workspaceId, apiId, cursor, rowsMax: limit + 1 }, externalId, deps);
  const items = await describeKeys(deps, workspaceId, rows.slice(0, limit), vault);
  return { items, cursor: rows[limit]?.id };
}

async function readPage(page: KeyPage, externalId: string | undefined, { db }: Call<Body>["deps"]): Promise<KeyRow[]> {
  if (externalId === undefined) return listKeyRows(db, page);
  const identityId = await findIdentityIdByExternalId(db, { workspaceId: page.workspaceId, externalId });
  return identityId === undefined ? [] : listKeysOfIdentity(db, { ...page, identityId });
}
