import type { ManifestObject } from "../source/contract.ts";
import { type Plan, progressing, released } from "./plan.ts";
import { deletionPolicyOf } from "./spec.ts";

export interface CleanUp<Stored, Action> {
  /** Stored objects that the deleted object still owns. */
  readonly own: readonly (Stored | undefined)[];
  /** Noun for the resource in the status. */
  readonly noun: string;
  readonly status: object;
  readonly removal: (type: "delete" | "release", stored: Stored) => Action;
}

/** Plans the cleanup of a deleted object: deletes or releases its stored resources according to `spec.deletionPolicy`. Pure. */
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
