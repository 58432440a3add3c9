import * as z from "zod";
import { findOverride } from "../../db/overrides.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { overrideNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { OverrideRef, OverrideResponse, toOverrideResponse } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Query = z.object(OverrideRef);
type Query = z.output<typeof Query>;

const required = { readOverride: onNamespace("read_override") };

export const getOverride = defineV1Procedure({
  path: "ratelimits.getOverride",
  method: "GET",
  successor: "ratelimit.getOverride",
  effect: "read",
  summary: "Read an override",
  description: "Reads the override with exactly this identifier. To read a pattern, name the pattern.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found"],
  input: Query,
  check: checkNamespaceSelector,
  response: OverrideResponse,
  handle,
});

async function handle(call: Call<Query, typeof required>): Promise<OverrideResponse> {
  const { body, caller, deps } = call;
  const { identifier } = body;
  const namespaceId = await selectNamespace(call, required.readOverride, body);
  call.require(required.readOverride, namespaceId);
  const row = await findOverride(deps.db, { workspaceId: caller.workspaceId, namespaceId, identifier });
  if (row === undefined) throw overrideNotFound(identifier);
  return toOverrideResponse(row);
}
