import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { insertAudit } from "../../db/audit.ts";
import { insertPermission } from "../../db/permissions.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent } from "../managed/changes.ts";
import { createOnce } from "../managed/create-once.ts";
import { MANAGED } from "../managed/resources.ts";
import { creatingManager } from "../managed/rules.ts";

/**
 * Creates a permission and returns its id. If the call's manager already has a permission, returns that permission's id.
 * @throws PublicError 409 if the slug exists.
 */
export async function createPermission(
  actor: Actor,
  requested: { readonly name: string; readonly slug: string; readonly description: string | undefined },
): Promise<string> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const { name, slug } = requested;
  const manager = creatingManager(actor);
  return inTransaction(deps, async (tx) => {
    const id = makeId("permission", deps.randomBytes(16));
    const description = toStoredDescription(requested.description);
    const creation = await createOnce(tx, actor, "permission", () =>
      insertPermission(tx, { workspaceId, id, name, slug, description, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return creation.id;
    if (creation.outcome === "taken") {
      throw new PublicError("permission_already_exists", `A permission with the slug ${slug} already exists.`);
    }
    await insertAudit(tx, actor, [auditEvent(MANAGED.permission, { id, slug }, "Created")]);
    return id;
  });
}

/**
 * Returns the stored form of a description: `null` for an empty string, because responses do not distinguish between an empty and a missing
 * description.
 */
export const toStoredDescription = (description: string | null | undefined): string | null =>
  description === undefined || description === "" ? null : description;
