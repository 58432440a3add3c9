import * as z from "zod";
import { countIdentities, listIdentitiesThatFit, listIdentityIds } from "../../db/identities.ts";
import { listRatelimitsOfIdentities } from "../../db/ratelimits.ts";
import { nextCursor, PAGE_BYTES_MAX } from "../../domain/lists/pages.ts";
import { onIdentitiesOfEnvironment } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Cursor, PageLimit, Total } from "../schemas.ts";
import { Environment, IdentityResponse, toRatelimitItem } from "./schemas.ts";

const Query = z.object({
  environment: Environment.describe(
    "Environment of the identities. All identities are in `default`; every other environment is empty.",
  ),
  limit: PageLimit,
  cursor: Cursor.optional(),
});
type Query = z.output<typeof Query>;

const ResponseBody = z.object({
  identities: z.array(IdentityResponse.omit({ meta: true })).describe("Identities on this page."),
  cursor: Cursor.optional(),
  total: Total,
});
type ResponseBody = z.input<typeof ResponseBody>;

const required = { readIdentity: onIdentitiesOfEnvironment("read_identity") };

export const listIdentities = defineV1Procedure({
  path: "identities.listIdentities",
  method: "GET",
  successor: "identities.listIdentities",
  effect: "read",
  summary: "List the identities",
  description: "Lists identities in the order of their ids, without their metadata.",
  permissions: required,
  errors: [],
  input: Query,
  response: ResponseBody,
  handle,
});

const THE_ENVIRONMENT = "default";

async function handle(call: Call<Query, typeof required>): Promise<ResponseBody> {
  const { body, caller, deps } = call;
  const { environment, limit, cursor = "" } = body;
  const { workspaceId } = caller;
  call.require(required.readIdentity, environment);
  if (environment !== THE_ENVIRONMENT) return { identities: [], total: 0 };
  // Reads one extra id. If it exists, there is a next page, which starts with this id.
  const ids = await listIdentityIds(deps.db, { workspaceId, cursor, rowsMax: limit + 1 });
  const asked = { workspaceId, identityIds: ids.slice(0, limit), bytesMax: PAGE_BYTES_MAX };
  const shown = ids.length === 0 ? [] : await listIdentitiesThatFit(deps.db, asked);
  const limits = await listRatelimitsOfIdentities(deps.db, { workspaceId, identityIds: shown.map(({ id }) => id) });
  const limitsById = Map.groupBy(limits, (one) => one.identity_id);
  const next = nextCursor(ids, shown, limit);
  return {
    identities: shown.map(({ id, external_id }) => ({
      id,
      externalId: external_id,
      ratelimits: (limitsById.get(id) ?? []).map(toRatelimitItem),
    })),
    ...(next === undefined ? {} : { cursor: next }),
    total: await countIdentities(deps.db, workspaceId),
  };
}
