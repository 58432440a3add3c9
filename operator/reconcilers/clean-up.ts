import type { ManifestObject } from "../source/contract.ts";
import { type Plan, progressing, released } from "./plan.ts";
import { deletionPolicyOf } from "./spec.ts";

export interface CleanUp<Stored, Action> {
  /** What the object still owns in the store, if anything. */
  readonly own: readonly (Stored | undefined)[];
  /** The name of such a thing, for the status. */
  readonly noun: string;
  readonly status: object;
  readonly removal: (type: "delete" | "release", stored: Stored) => Action;
}

/** For an object that is being deleted: what it owns in the store is deleted or released, as `spec.deletionPolicy` says. Pure. */
export function planCleanUp<Stored, Action>(
  object: ManifestObject,
  { own, noun, status, removal }: CleanUp<Stored, Action>,
): Plan<Action> {
  const left = own.filter((stored) => stored !== undefined);
  if (left.length === 0) return released;
  const type = deletionPolicyOf(object, "Delete") === "Delete" ? "delete" : "release";
  return {
    actions: left.map((stored) => removal(type, stored)),
    verdict: progressing("Progressing", `The ${noun} is being cleaned up.`),
    status,
  };
}
