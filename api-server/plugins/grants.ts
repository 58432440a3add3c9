import {
  beyond,
  holdsForSome,
  idsHeld,
  type RootKeyPermission,
  tupleCovering,
  tupleHeld,
} from "../../core/permissions/root-key.ts";
import { type Grants, MissingPermission, type NeededPermission } from "../needed-permissions.ts";
import type { NotesUses } from "../root-key-uses.ts";

/** Of a person: the role says what is held, so nothing is narrowed. */
const NOTES_NOTHING: NotesUses["note"] = () => undefined;

/**
 * The permissions of a root key with these tuples, or of a person. Made once per cached root key, so that requests allocate nothing.
 * @param holder how a refusal begins.
 * @param note told which held tuple was asked for, and for which id where the tuple has a form with one.
 */
export function createGrants(
  held: ReadonlySet<string>,
  holder = "The root key",
  note: NotesUses["note"] = NOTES_NOTHING,
): Grants<NeededPermission> {
  function holds(needed: RootKeyPermission, id: string | undefined): boolean {
    const tuple = tupleHeld(needed, id, held);
    if (tuple === undefined) return false;
    note(tuple, needed.orFor === undefined ? undefined : id);
    return true;
  }
  /** For a question about all objects. */
  function noteAll(needed: RootKeyPermission): void {
    if (held.has(needed.tuple)) note(needed.tuple);
  }
  return {
    require: (needed, id) => {
      if (!holds(needed, id)) throw new MissingPermission(needed, id, holder);
    },
    holds,
    holdsForSome: (needed) => {
      noteAll(needed);
      return holdsForSome(needed, held);
    },
    idsHeld: (needed) => {
      const ids = idsHeld(needed, held);
      if (ids === "all") noteAll(needed);
      else for (const id of ids) holds(needed, id);
      return ids;
    },
    beyond: (tuples) => {
      // What it gives to other root keys it must go on holding.
      for (const tuple of tuples) {
        const covering = tupleCovering(tuple, held);
        if (covering !== undefined) note(covering);
      }
      return beyond(tuples, held);
    },
  };
}
