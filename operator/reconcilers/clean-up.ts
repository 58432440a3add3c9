import type { ManifestObject } from "../source/contract.ts";
import { type Plan, progressing, released } from "./plan.ts";
import { deletionPolicyOf } from "./spec.ts";

export interface CleanUp<Stored, Action> {
  /** What the object still has in the store, if anything. */
  readonly own: readonly (Stored | undefined)[];
  /** What such a thing is called, for the status. */
  readonly noun: string;
  readonly status: object;
  readonly removal: (type: "delete" | "release", stored: Stored) => Action;
}

/** Pure. Of an object that is being deleted: what it has in the store goes with it, or is released, as `spec.deletionPolicy` says. */
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
