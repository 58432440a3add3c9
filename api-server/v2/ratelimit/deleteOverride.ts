import * as z from "zod";
import { deleteOrRelease } from "../../domain/managed/rules.ts";
import { namespaceNotFound, overrideNotFound } from "../../domain/not-found.ts";
import { onNamespace } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { holdNamespace } from "../../store/namespaces.ts";
import { deleteOverride as deleteOverrideRow, lockOverride, updateOverride } from "../../store/overrides.ts";
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
  description: "The override with exactly this identifier: a pattern is deleted by naming the pattern.",
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
    const override = await lockOverride(tx, { workspaceId, namespaceId: namespace.id, identifier });
    if (override === undefined) throw overrideNotFound(identifier);
    const { id } = override;
    const targets = [
      { type: "ratelimitOverride" as const, id, name: identifier },
      { type: "ratelimitNamespace" as const, id: namespace.id, name: namespace.name },
    ];
    await deleteOrRelease(call, override, `The override ${id}`, {
      remove: async () => {
        await deleteOverrideRow(tx, { workspaceId, id, deletedAt: deps.nowMs() });
        await insertAudit(tx, call, [
          { event: "ratelimit.delete_override", description: `Deleted override ${id}`, targets },
        ]);
      },
      release: async () => {
        const { max_count: limit, duration_ms: durationMs, async } = override;
        await updateOverride(tx, { workspaceId, id, limit, durationMs, async, manager: null, updatedAt: deps.nowMs() });
        await insertAudit(tx, call, [
          { event: "ratelimit.set_override", description: `Released override ${id}`, targets },
        ]);
      },
    });
  });
  return {};
}
