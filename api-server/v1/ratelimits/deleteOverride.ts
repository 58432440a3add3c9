import * as z from "zod";
import { deleteOverride as remove } from "../../domain/ratelimits/delete-override.ts";
import { onNamespace } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { Empty } from "../schemas.ts";
import { OverrideRef } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Body = z.object(OverrideRef);
type Body = z.output<typeof Body>;

const needed = { deleteOverride: onNamespace("delete_override") };

export const deleteOverride = defineV1Procedure({
  path: "ratelimits.deleteOverride",
  method: "POST",
  successor: "ratelimit.deleteOverride",
  effect: "change",
  summary: "Delete an override",
  description: "Deletes the override with exactly this identifier: to delete a pattern, name the pattern.",
  permissions: needed,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found", "managed_elsewhere"],
  input: Body,
  check: checkNamespaceSelector,
  answer: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const namespace = await selectNamespace(call, needed.deleteOverride, call.body);
  await remove(call, needed.deleteOverride, { namespace, identifier: call.body.identifier });
  return {};
}
