import * as z from "zod";
import { findIdentity } from "../../db/identities.ts";
import { listRatelimitsOfIdentity } from "../../db/ratelimits.ts";
import { onIdentity } from "../../domain/permissions/required-permissions.ts";
import { identityNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ExternalId, IdentityId, IdentityResponse, toIdentityResponse } from "./schemas.ts";
import { checkIdentitySelector, selectIdentity } from "./select-identity.ts";

const Query = z.object({ identityId: IdentityId.optional(), externalId: ExternalId.optional() });
type Query = z.output<typeof Query>;

const required = { readIdentity: onIdentity("read_identity") };

export const getIdentity = defineV1Procedure({
  path: "identities.getIdentity",
  method: "GET",
  successor: "identities.getIdentity",
  effect: "read",
  summary: "Read an identity",
  description: "Reads an identity by `identityId` or `externalId`. If both are given, the id takes precedence.",
  permissions: required,
  errors: ["identity_not_found"],
  input: Query,
  check: checkIdentitySelector,
  response: IdentityResponse,
  handle,
});

async function handle(call: Call<Query, typeof required>): Promise<IdentityResponse> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const identityId = await selectIdentity(call, call.body);
  call.require(required.readIdentity, identityId);
  const row = await findIdentity(deps.db, { workspaceId, identity: identityId });
  if (row === undefined) throw identityNotFound(identityId);
  return toIdentityResponse(row, await listRatelimitsOfIdentity(deps.db, { workspaceId, identityId }));
}
