import * as z from "zod";
import { listIdentitiesThatFit, listIdentityIds, searchIdentityIds } from "../../db/identities.ts";
import { listRatelimitsOfIdentities } from "../../db/ratelimits.ts";
import { nextCursor, PAGE_BYTES_MAX, readPage } from "../../domain/lists/pages.ts";
import { onIdentity } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { toIdentityOut } from "../key-reply.ts";
import { Cursor, IdentityOut, PageLimit, Search } from "../schemas.ts";

const Body = z.strictObject({
  limit: PageLimit,
  cursor: Cursor.optional(),
  search: Search.describe("Search text: matches if the id or `externalId` contains it, ignoring case.").optional(),
});
type Body = z.output<typeof Body>;

const required = { readIdentity: onIdentity("read_identity") };

export const listIdentities = defineListProcedure({
  path: "identities.listIdentities",
  effect: "read",
  summary: "List the identities",
  description:
    "Lists live identities in the order of their ids. The root key must be allowed to read every identity on the page. A page ends early if its identities would exceed 4 MiB in total.",
  permissions: required,
  errors: [],
  body: Body,
  item: IdentityOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<IdentityOut>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search } = body;
  const { workspaceId } = caller;
  // A root key that has the permission for no identity at all gets 403 before any read. The error names both possible permissions, but no
  // ids.
  if (!call.holdsForSome(required.readIdentity)) call.require(required.readIdentity, "<id>");
  // Reads one extra id. If it exists, there is a next page, which starts with this id.
  const page = { workspaceId, cursor, rowsMax: limit + 1 };
  const ids = await readPage(call, search, {
    all: (db) => listIdentityIds(db, page),
    fitting: (db, part) => searchIdentityIds(db, { ...page, search: part }),
  });
  const asked = { workspaceId, identityIds: ids.slice(0, limit), bytesMax: PAGE_BYTES_MAX };
  const shown = await listIdentitiesThatFit(deps.db, asked);
  for (const { id } of shown) call.require(required.readIdentity, id);
  const identityIds = shown.map(({ id }) => id);
  const limits =
    identityIds.length === 0 ? [] : await listRatelimitsOfIdentities(deps.db, { workspaceId, identityIds });
  const limitsById = Map.groupBy(limits, (one) => one.identity_id);
  const items = shown.map((row) => toIdentityOut(row, limitsById.get(row.id) ?? []));
  return { items, cursor: nextCursor(ids, shown, limit) };
}
