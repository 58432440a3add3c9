import * as z from "zod";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { deleteOverride as remove } from "../../domain/ratelimits/delete-override.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Namespace, OverrideIdentifier } from "./schemas.ts";

const Body = z.strictObject({ namespace: Namespace, identifier: OverrideIdentifier });
type Body = z.output<typeof Body>;

const required = { deleteOverride: onNamespace("delete_override") };

export const deleteOverride = defineProcedure({
  path: "ratelimit.deleteOverride",
  effect: "change",
  summary: "Delete an override",
  description: "Deletes the override with exactly this identifier. To delete a pattern, name the pattern.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found", "managed_by_manifest"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  await remove(call, required.deleteOverride, call.body);
  return {};
}
