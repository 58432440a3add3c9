import * as z from "zod";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { deleteOverride as remove } from "../../domain/ratelimits/delete-override.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty } from "../schemas.ts";
import { OverrideRef } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Body = z.object(OverrideRef);
type Body = z.output<typeof Body>;

const required = { deleteOverride: onNamespace("delete_override") };

export const deleteOverride = defineV1Procedure({
  path: "ratelimits.deleteOverride",
  method: "POST",
  successor: "ratelimit.deleteOverride",
  effect: "change",
  summary: "Delete an override",
  description: "Deletes the override with exactly this identifier. To delete a pattern, name the pattern.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found", "managed_by_manifest"],
  input: Body,
  check: checkNamespaceSelector,
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const namespace = await selectNamespace(call, required.deleteOverride, call.body);
  await remove(call, required.deleteOverride, { namespace, identifier: call.body.identifier });
  return {};
}
