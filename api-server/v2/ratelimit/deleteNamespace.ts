import * as z from "zod";
import { deleteOrRelease } from "../../domain/managed/rules.ts";
import { deleteNamespaceWithOverrides } from "../../domain/namespaces.ts";
import { namespaceNotFound } from "../../domain/not-found.ts";
import { onNamespace } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { auditContext, insertAudit } from "../../store/audit.ts";
import { lockNamespace, updateNamespaceManager } from "../../store/namespaces.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Empty } from "../schemas.ts";
import { Namespace } from "./schemas.ts";

const Body = z.strictObject({ namespace: Namespace });
type Body = z.output<typeof Body>;

const needed = { deleteNamespace: onNamespace("delete_namespace") };

export const deleteNamespace = defineProcedure({
  path: "ratelimit.deleteNamespace",
  effect: "change",
  summary: "Delete a rate-limit namespace",
  description:
    "With its overrides. Limit calls then answer 410 under its id and name, until `ratelimit.createNamespace` makes a new one.",
  permissions: needed,
  errors: ["ratelimit_namespace_not_found", "managed_elsewhere"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const namespace = await lockNamespace(tx, { workspaceId, namespace: body.namespace });
    if (namespace === undefined) throw namespaceNotFound(body.namespace);
    const { id, name } = namespace;
    call.require(needed.deleteNamespace, id);
    await deleteOrRelease(call, namespace, `The rate-limit namespace ${id}`, {
      remove: () => deleteNamespaceWithOverrides(tx, auditContext(call), namespace),
      release: async () => {
        const targets = [{ type: "ratelimitNamespace" as const, id, name }];
        await updateNamespaceManager(tx, { workspaceId, id, manager: null });
        await insertAudit(tx, call, [
          { event: "ratelimitNamespace.update", description: `Released rate-limit namespace ${id}`, targets },
        ]);
      },
    });
  });
  return {};
}
