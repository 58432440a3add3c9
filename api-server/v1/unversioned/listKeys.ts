import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { listKeyIds, listKeyIdsOfOwner, listKeysThatFit } from "../../db/keys.ts";
import { countKeysOfApi } from "../../db/keys-of-api.ts";
import { PAGE_BYTES_MAX } from "../../domain/lists/pages.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { describeKeys, KeyObject } from "../key-object.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, PageLimit, Total } from "../schemas.ts";

/** Maximum offset. It is limited because skipped rows must be read as well. */
const OFFSET_MAX = 100_000;

const Query = z.object({
  apiId: ApiId,
  limit: PageLimit,
  offset: z
    .int()
    .min(0)
    .max(OFFSET_MAX)
    .default(0)
    .describe("Number of keys to skip.")
    .meta({ examples: [100] }),
  ownerId: z
    .string()
    .min(1)
    .optional()
    .describe("Returns only keys of this owner.")
    .meta({ examples: ["user_123"] }),
});
type Query = z.output<typeof Query>;

const ResponseBody = z.object({
  keys: z
    .array(
      KeyObject.omit({ roles: true, permissions: true, refill: true, identity: true, enabled: true, plaintext: true }),
    )
    .describe("Keys on this page."),
  total: Total.describe("Number of live keys of the API, regardless of the owner filter."),
});

const required = { readKey: onApi("read_key"), readApi: onApi("read_api") };

export const listKeys = defineV1Procedure({
  path: "apis/:apiId/keys",
  method: "GET",
  successor: "apis.listKeys",
  effect: "read",
  summary: "List the keys of an API",
  description:
    "Oldest form of `apis.listKeys`, with an offset and fewer fields per key. Lists keys in the order of their ids.",
  permissions: required,
  errors: ["api_not_found"],
  input: Query,
  response: ResponseBody,
  handle,
});

async function handle({
  body,
  caller,
  deps,
  require,
}: Call<Query, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { apiId, limit, offset, ownerId } = body;
  const { workspaceId } = caller;
  require(required.readKey, apiId);
  require(required.readApi, apiId);
  if ((await findApi(deps.db, { workspaceId, apiId })) === undefined) throw apiNotFound(apiId);
  const page = { workspaceId, apiId, cursor: "", rowsMax: offset + limit };
  const ids = await (ownerId === undefined
    ? listKeyIds(deps.db, page)
    : listKeyIdsOfOwner(deps.db, { ...page, ownerId }));
  const [rows, total] = await Promise.all([
    listKeysThatFit(deps.db, { workspaceId, keyIds: ids.slice(offset), bytesMax: PAGE_BYTES_MAX }),
    countKeysOfApi(deps.db, { workspaceId, apiId }),
  ]);
  return { keys: await describeKeys(deps, workspaceId, rows, { inList: true }), total };
}
