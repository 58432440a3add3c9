import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { deleteManaged, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Namespace } from "./schemas.ts";

const Body = z.strictObject({ namespace: Namespace });
type Body = z.output<typeof Body>;

const required = { deleteNamespace: onNamespace("delete_namespace") };

export const deleteNamespace = defineProcedure({
  path: "ratelimit.deleteNamespace",
  effect: "change",
  summary: "Delete a rate-limit namespace",
  description:
    "Also deletes the namespace's overrides. Limit calls with its id or name then get 410; with its name, until `ratelimit.createNamespace` creates a new namespace with this name.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "managed_by_manifest"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const namespace = await lockManaged(tx, MANAGED.namespace, { workspaceId, which: body.namespace });
    call.require(required.deleteNamespace, namespace.id);
    await deleteManaged(tx, call, MANAGED.namespace, namespace);
  });
  return {};
}
