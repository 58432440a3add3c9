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

/** Records nothing. Usage by people is not recorded, because their role determines their permissions. */
const NOTES_NOTHING: RecordsUsage["note"] = () => undefined;

/**
 * Returns the permissions of a root key with these tuples, or of a person. Created once per cached root key, so that requests allocate
 * nothing.
 * @param holder start of the error message, which names the holder.
 * @param note called with each held tuple that was required, and with the id if the tuple has a form with one.
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
  /** Records that a permission was used for all objects instead of a single one. */
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
      // Granted permissions are recorded as used, because the root key must keep the permissions that it grants to others.
      for (const tuple of tuples) {
        const covering = tupleCovering(tuple, held);
        if (covering !== undefined) note(covering);
      }
      return beyond(tuples, held);
    },
  };
}
