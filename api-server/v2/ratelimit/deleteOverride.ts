import * as z from "zod";
import { deleteManaged, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { namespaceNotFound } from "../../domain/refusals/not-found.ts";
import { onNamespace } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { holdNamespace } from "../../store/namespaces.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Empty } from "../schemas.ts";
import { Namespace, OverrideIdentifier } from "./schemas.ts";

const Body = z.strictObject({ namespace: Namespace, identifier: OverrideIdentifier });
type Body = z.output<typeof Body>;

const needed = { deleteOverride: onNamespace("delete_override") };

export const deleteOverride = defineProcedure({
  path: "ratelimit.deleteOverride",
  effect: "change",
  summary: "Delete an override",
  description: "Deletes the override with exactly this identifier: to delete a pattern, give the pattern.",
  permissions: needed,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { identifier } = body;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const namespace = await holdNamespace(tx, { workspaceId, namespace: body.namespace });
    if (namespace === undefined) throw namespaceNotFound(body.namespace);
    call.require(needed.deleteOverride, namespace.id);
    const override = await lockManaged(tx, MANAGED.override, { workspaceId, which: identifier, namespace });
    await deleteManaged(tx, call, MANAGED.override, override);
  });
  return {};
}
