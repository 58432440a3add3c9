import type { Call } from "../../procedure.ts";
import { type ClaimedKind, findOwn, type OwnRows } from "../../store/managed-objects.ts";
import type { Queryable } from "../../store/queryable.ts";
import { creatingManager } from "./rules.ts";

/*
 * A manager has one object of a kind, keys aside. So creating with a manager is safe to repeat: the second call names what the first
 * one made.
 */

/** What the manager of a call that creates has already; undefined without a manager. */
export async function findCreated<Kind extends ClaimedKind>(
  tx: Queryable,
  call: Call<unknown>,
  kind: Kind,
): Promise<OwnRows[Kind] | undefined> {
  const manager = creatingManager(call);
  return manager === null ? undefined : findOwn(tx, kind, { workspaceId: call.caller.workspaceId, manager });
}

/** `own` is what the manager had already, `taken` when something else is in the way. */
export type Creation = { readonly outcome: "made" | "taken" } | { readonly outcome: "own"; readonly id: string };

/** @param insert makes the object; returns false when its name, or its manager, has another. */
export async function createOnce(
  tx: Queryable,
  call: Call<unknown>,
  kind: ClaimedKind,
  insert: () => Promise<boolean>,
): Promise<Creation> {
  const own = await findCreated(tx, call, kind);
  if (own !== undefined) return { outcome: "own", id: own.id };
  if (await insert()) return { outcome: "made" };
  // Either the name is taken, or the same manager was quicker in another call.
  const quicker = await findCreated(tx, call, kind);
  return quicker === undefined ? { outcome: "taken" } : { outcome: "own", id: quicker.id };
}
