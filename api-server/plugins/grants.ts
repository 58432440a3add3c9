import { holdsForSome, holdsPermission, idsHeld } from "../../core/permissions/root-key.ts";
import { type Grants, MissingPermission, type NeededPermission } from "../needed-permissions.ts";

/** The permissions of a root key with these tuples. Made once per cached root key, so that requests allocate nothing. */
export const createGrants = (held: ReadonlySet<string>): Grants<NeededPermission> => ({
  require: (needed, id) => {
    if (!holdsPermission(needed, id, held)) throw new MissingPermission(needed, id);
  },
  holds: (needed, id) => holdsPermission(needed, id, held),
  holdsForSome: (needed) => holdsForSome(needed, held),
  idsHeld: (needed) => idsHeld(needed, held),
});
