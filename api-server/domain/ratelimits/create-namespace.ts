import type { PoolClient } from "pg";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { insertAudit } from "../../db/audit.ts";
import { insertNamespace, lockNamespaceByName } from "../../db/namespaces.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent, handOver } from "../managed/changes.ts";
import { createOnce } from "../managed/create-once.ts";
import { MANAGED } from "../managed/resources.ts";
import { adoptingManager, creatingManager } from "../managed/rules.ts";

/**
 * Creates a rate-limit namespace, or adopts the existing one if the call requests it. Returns its id.
 * @throws PublicError 409 if the name is taken and not adopted.
 */
export async function createNamespace(actor: Actor, name: string): Promise<string> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const manager = creatingManager(actor);
  return inTransaction(deps, async (tx) => {
    const id = makeId("namespace", deps.randomBytes(16));
    const creation = await createOnce(tx, actor, "namespace", () =>
      insertNamespace(tx, { workspaceId, id, name, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return creation.id;
    if (creation.outcome === "taken") return await adopt(tx, actor, name);
    await insertAudit(tx, actor, [auditEvent(MANAGED.namespace, { id, name }, "Created")]);
    return id;
  });
}

/**
 * Adopts the live namespace with this name. Throws PublicError 409 if the call does not request adoption, or if the namespace has a
 * manager.
 */
async function adopt(tx: PoolClient, actor: Actor, name: string): Promise<string> {
  const { workspaceId } = actor.caller;
  const manager = adoptingManager(actor);
  const existing = await lockNamespaceByName(tx, { workspaceId, name });
  if (existing === undefined || existing.manager !== null || manager === null) {
    const by = existing?.manager == null ? "" : `, managed by ${existing.manager}`;
    throw new PublicError(
      "ratelimit_namespace_already_exists",
      `A rate-limit namespace named ${name} already exists${by}.`,
    );
  }
  await insertAudit(tx, actor, await handOver(tx, actor, MANAGED.namespace, existing, manager));
  return existing.id;
}
