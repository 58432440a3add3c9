import type { Queryable } from "../../../postgres/queryable.ts";
import { type ClaimedKind, findOwn, type OwnRows } from "../../db/managed-objects.ts";
import type { Actor } from "../actor.ts";
import { creatingManager } from "./rules.ts";

/*
 * A manager has at most one object of each kind, except keys. A call by a manager can therefore be repeated safely: the second call returns
 * the object that the first one created.
 */

/** Returns the existing object of the call's manager; `undefined` if the call has no manager. */
export async function findCreated<Kind extends ClaimedKind>(
  tx: Queryable,
  actor: Actor,
  kind: Kind,
): Promise<OwnRows[Kind] | undefined> {
  const manager = creatingManager(actor);
  return manager === null ? undefined : findOwn(tx, kind, { workspaceId: actor.caller.workspaceId, manager });
}

/** Result of a creation. `own`: the manager already has this object. `taken`: another object conflicts. */
export type Creation = { readonly outcome: "made" | "taken" } | { readonly outcome: "own"; readonly id: string };

/** @param insert inserts the object; returns false if an object with this name or this manager already exists. */
export async function createOnce(
  tx: Queryable,
  actor: Actor,
  kind: ClaimedKind,
  insert: () => Promise<boolean>,
): Promise<Creation> {
  const own = await findCreated(tx, actor, kind);
  if (own !== undefined) return { outcome: "own", id: own.id };
  if (await insert()) return { outcome: "made" };
  // If nothing was inserted, either the name exists, or a concurrent call by the same manager has created the object.
  const quicker = await findCreated(tx, actor, kind);
  return quicker === undefined ? { outcome: "taken" } : { outcome: "own", id: quicker.id };
}
