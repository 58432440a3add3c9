import * as z from "zod";
import { overrideNotFound } from "../../domain/refusals/not-found.ts";
import { onNamespace } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { findOverride } from "../../store/overrides.ts";
import { OverrideAnswer, OverrideRef, toOverrideAnswer } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Query = z.object(OverrideRef);
type Query = z.output<typeof Query>;

const needed = { readOverride: onNamespace("read_override") };

export const getOverride = defineV1Procedure({
  path: "ratelimits.getOverride",
  method: "GET",
  successor: "ratelimit.getOverride",
  effect: "read",
  summary: "Read an override",
  description: "The override with exactly this identifier: a pattern is found by the pattern, and finds nothing else.",
  permissions: needed,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found"],
  input: Query,
  check: checkNamespaceSelector,
  answer: OverrideAnswer,
  handle,
});

async function handle(call: Call<Query, typeof needed>): Promise<OverrideAnswer> {
  const { body, caller, deps } = call;
  const { identifier } = body;
  const namespaceId = await selectNamespace(call, needed.readOverride, body);
  call.require(needed.readOverride, namespaceId);
  const row = await findOverride(deps.db, { workspaceId: caller.workspaceId, namespaceId, identifier });
  if (row === undefined) throw overrideNotFound(identifier);
  return toOverrideAnswer(row);
}
