import { PublicError } from "../../core/errors.ts";
import { enoughFor, holdsForSome, holdsPermission } from "../../core/permissions/root-key.ts";
import type { Grants, NeededPermission } from "../needed-permissions.ts";

/** What a root key with these tuples allows. Made once for a root key that is cached, so that requests allocate nothing for it. */
export const createGrants = (held: ReadonlySet<string>): Grants<NeededPermission> => ({
  require: (needed, id) => {
    if (holdsPermission(needed, id, held)) return;
    throw new PublicError("forbidden", `The root key lacks the permission ${enoughFor(needed, id)}.`);
  },
  holds: (needed, id) => holdsPermission(needed, id, held),
  holdsForSome: (needed) => holdsForSome(needed, held),
});
