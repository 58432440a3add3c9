import * as z from "zod";
import { EXPIRES_MAX_MS } from "../../../core/keys/key-hash.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findApi } from "../../db/apis.ts";
import { findIdentityIdByExternalId } from "../../db/identities.ts";
import {
  type FoundKeyRow,
  type KeyFilter,
  type KeyPosition,
  searchKeys as searchInStore,
} from "../../db/key-search.ts";
import { findPermission } from "../../db/permissions.ts";
import { findRole } from "../../db/roles.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { ApiIdOut, KeyId, KeyNameOut, PageLimit, ShortApiId, unixMs } from "../schemas.ts";

const Body = z.strictObject({
  apiId: ShortApiId.optional().describe(
    "Returns only keys of this API. Default: keys of all APIs that the caller is allowed to read.",
  ),
  keyId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Complete id of the key.")
    .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  hash: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("SHA-256 of the complete secret, in base64. The secret itself is never sent.")
    .meta({ examples: ["uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="] }),
  name: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "Text in the name, ignoring case. With `apiId`, the name must contain it; without, the name must begin with it.",
    )
    .meta({ examples: ["Billing"] }),
  start: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Prefix of `start`, the stored first characters of the secret; case-sensitive.")
    .meta({ examples: ["prod_3Ab9"] }),
  externalId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Complete external id of the owner; case-sensitive.")
    .meta({ examples: ["user_123"] }),
  enabled: z.boolean().optional().describe("true: only enabled keys; false: only disabled keys."),
  expired: z.boolean().optional().describe("true: only expired keys; false: only keys that have not expired."),
  expiresBefore: z
    .int()
    .min(0)
    .max(EXPIRES_MAX_MS)
    .optional()
    .describe(
      "Returns only enabled, unexpired keys that expire before this time (Unix ms), sorted by expiry, earliest first.",
    )
    .meta({ examples: [1_769_904_000_000] }),
  limited: z.boolean().optional().describe("true: only keys with credits; false: only unlimited keys."),
  managed: z.boolean().optional().describe("true: only keys that a manifest manages; false: only unmanaged keys."),
  role: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Returns only keys with the role that has this id or name.")
    .meta({ examples: ["editor"] }),
  permission: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      "Id or slug of a permission: returns only keys that hold it, directly or through a role. Wildcards are not expanded.",
    )
    .meta({ examples: ["documents.read"] }),
  limit: PageLimit,
  cursor: z
    .string()
    .max(300)
    .optional()
    .describe("`pagination.cursor` of the previous page.")
    .meta({ examples: ["1767225600000.key_4fGh7Jk2LmN8pQrS"] }),
});
type Body = z.output<typeof Body>;

const FoundKey = z.strictObject({
  keyId: KeyId,
  apiId: ApiIdOut,
  start: z
    .string()
    .describe("First characters of the secret, to identify the key.")
    .meta({ examples: ["prod_3Ab9"] }),
  name: KeyNameOut.optional(),
  externalId: z
    .string()
    .optional()
    .describe("The owner's external id in your system.")
    .meta({ examples: ["user_123"] }),
  enabled: z.boolean().describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  remaining: z
    .int()
    .optional()
    .describe(
      "Stored remaining credits; only for limited keys. They may still include credits that were spent in the last second.",
    )
    .meta({ examples: [1000] }),
  createdAt: unixMs("When the key was created, Unix milliseconds."),
  lastUsedAt: unixMs(
    "When the key was last verified, Unix milliseconds, to the minute. May be up to 5 minutes behind.",
  ).optional(),
  manager: z
    .string()
    .optional()
    .describe("Manager of the key: `<cluster>/<kind>/<namespace>/<name>` of its manifest.")
    .meta({ examples: ["main/ApiKey/shop/billing"] }),
});
type FoundKey = z.input<typeof FoundKey>;

const required = { readKey: onApi("read_key") };

export const searchKeys = defineListProcedure({
  path: "admin.searchKeys",
  effect: "read",
  summary: "Search keys",
  description:
    "Searches the keys of one API, or of all APIs that the caller is allowed to read. Newest first, unless `expiresBefore` is given. All conditions must match. Includes disabled and expired keys, but not deleted ones. A search that takes longer than 5 s fails with 408.",
  permissions: required,
  errors: ["api_not_found"],
  addition: true,
  body: Body,
  item: FoundKey,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<FoundKey>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const apiIds = await apisToSearch(call);
  const rows = await readBriefly(deps, "Searching a single API, or for a longer text, is often faster.", async (db) => {
    const filter = await filterOf(db, body, { workspaceId, apiIds, nowMs: deps.nowMs() });
    if (filter === undefined) return [];
    // Reads one extra row. If it exists, there is a next page.
    return searchInStore(db, filter, { after: positionAt(body.cursor), rowsMax: body.limit + 1 });
  });
  const shown = rows.slice(0, body.limit);
  const last = shown.at(-1);
  return {
    items: shown.map(toFoundKey),
    cursor: rows.length > body.limit && last !== undefined ? `${sortedAt(last, body)}.${last.id}` : undefined,
  };
}

/**
 * Returns the ids of the APIs in which to search.
 * @throws PublicError 404 and 403, in this order, for a single API; 403 if the caller is not allowed to read the keys of any API.
 */
async function apisToSearch(call: Call<Body, typeof required>): Promise<"all" | readonly string[]> {
  const { body, caller, deps } = call;
  const { apiId } = body;
  if (apiId === undefined) {
    const held = call.idsHeld(required.readKey);
    if (held.length === 0) call.require(required.readKey);
    return held;
  }
  const { workspaceId } = caller;
  if ((await findApi(deps.db, { workspaceId, apiId })) === undefined) throw apiNotFound(apiId);
  call.require(required.readKey, apiId);
  return [apiId];
}

/** Returns the filter for the database; `undefined` if no key can match because the named role or permission does not exist. */
async function filterOf(
  db: Queryable,
  body: Body,
  where: Pick<KeyFilter, "workspaceId" | "apiIds" | "nowMs">,
): Promise<KeyFilter | undefined> {
  const { workspaceId } = where;
  const { role, permission, externalId, keyId, hash, name, start } = body;
  const { enabled, expired, expiresBefore, limited, managed } = body;
  const roleRow = role === undefined ? undefined : await findRole(db, { workspaceId, role });
  const permissionRow = permission === undefined ? undefined : await findPermission(db, { workspaceId, permission });
  if ((role !== undefined && roleRow === undefined) || (permission !== undefined && permissionRow === undefined)) {
    return undefined;
  }
  const owner =
    externalId === undefined
      ? undefined
      : { externalId, identityId: await findIdentityIdByExternalId(db, { workspaceId, externalId }) };
  const flags = { enabled, expired, expiresBefore, limited, managed };
  return { ...where, ...flags, keyId, hash, name, start, owner, roleId: roleRow?.id, permissionId: permissionRow?.id };
}

/** Returns the time of a key by which the page is sorted. */
const sortedAt = ({ created_at, expires_at }: FoundKeyRow, { expiresBefore }: Body): number =>
  expiresBefore === undefined ? created_at : (expires_at ?? 0);

/** Parses a cursor; a malformed one starts at the first page. */
function positionAt(cursor: string | undefined): KeyPosition | undefined {
  const [, atMs, keyId] = /^(\d{1,15})\.([A-Za-z0-9_]{1,255})$/.exec(cursor ?? "") ?? [];
  return atMs === undefined || keyId === undefined ? undefined : { atMs: Number(atMs), keyId };
}

const toFoundKey = (row: FoundKeyRow): FoundKey => ({
  keyId: row.id,
  apiId: row.api_id,
  start: row.start,
  ...(row.name === null ? {} : { name: row.name }),
  ...(row.external_id === null ? {} : { externalId: row.external_id }),
  enabled: row.enabled,
  ...(row.expires_at === null ? {} : { expires: row.expires_at }),
  ...(row.remaining === null ? {} : { remaining: row.remaining }),
  createdAt: row.created_at,
  ...(row.last_used_at === null ? {} : { lastUsedAt: row.last_used_at }),
  ...(row.manager === null ? {} : { manager: row.manager }),
});
