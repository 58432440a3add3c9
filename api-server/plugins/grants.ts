import {
  beyond,
  holdsForSome,
  idsHeld,
  type RootKeyPermission,
  tupleCovering,
  tupleHeld,
} from "../../core/permissions/root-key.ts";
import { type Grants, MissingPermission, type RequiredPermission } from "../domain/permissions/required-permissions.ts";
import type { RecordsUsage } from "../keys/root-key-usage.ts";

/** Used for people. Their use of permissions is not recorded, because their role determines their permissions. */
const NOTES_NOTHING: RecordsUsage["note"] = () => undefined;

/**
 * Returns the permissions of a root key, or of a person, that holds these tuples. Created once per cached root key, so that requests
 * allocate nothing.
 * @param holder start of the error message, which names the holder.
 * @param note called with each tuple that was required and is held, and with the object's id if the permission can be held for single
 * objects.
 */
export function createGrants(
  held: ReadonlySet<string>,
  holder = "The root key",
  note: RecordsUsage["note"] = NOTES_NOTHING,
): Grants<RequiredPermission> {
  function holds(required: RootKeyPermission, id: string | undefined): boolean {
    const tuple = tupleHeld(required, id, held);
    if (tuple === undefined) return false;
    note(tuple, required.orFor === undefined ? undefined : id);
    return true;
  }
  /** Records that a permission was used for all objects, not for a single one. */
  function noteAll(required: RootKeyPermission): void {
    if (held.has(required.tuple)) note(required.tuple);
  }
  return {
    require: (required, id) => {
      if (!holds(required, id)) throw new MissingPermission(required, id, holder);
    },
    holds,
    holdsForSome: (required) => {
      noteAll(required);
      return holdsForSome(required, held);
    },
    idsHeld: (required) => {
      const ids = idsHeld(required, held);
      if (ids === "all") noteAll(required);
      else for (const id of ids) holds(required, id);
      return ids;
    },
    beyond: (tuples) => {
      // Permissions that the root key grants to others are recorded as used, because it could not grant them without holding them.
      for (const tuple of tuples) {
        const covering = tupleCovering(tuple, held);
        if (covering !== undefined) note(covering);
      }
      return beyond(tuples, held);
    },
  };
}
