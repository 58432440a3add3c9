import { PublicError } from "../../../core/errors.ts";
import type { Management } from "../../procedure.ts";
import { isUniqueViolation } from "../../store/unique-violation.ts";
import type { ManagedRow, ManagedThing } from "./things.ts";

/*
 * Who may change a managed object (api-v2.md section 24.1). An object that a manifest made carries its manager's name; any other
 * caller that would change it is told to edit the manifest, because the operator would undo the change anyway. This guards against
 * mistakes between two writers, not against attackers: any root key with the permission may send the header.
 */

/** A call, or anything else with its three headers. */
export interface Managing {
  readonly management: Management;
}

/** Of a call without such headers, or of one that ignores them: it changes unmanaged objects alone. */
export const UNMANAGED: Management = { manager: undefined, adopt: false, release: false };

/**
 * To be called before a managed object is changed or deleted, with the row locked.
 * @returns the manager that the row must have after a change: null when it is, or becomes, unmanaged.
 * @throws PublicError 409 `managed_elsewhere` when another manager has it, or the caller names none.
 */
export function guardManaged(
  { management }: Managing,
  { noun }: Pick<ManagedThing, "noun">,
  row: ManagedRow,
): string | null {
  const { manager, release } = management;
  if (row.manager !== null && row.manager !== manager) {
    throw new PublicError(
      "managed_elsewhere",
      `The ${noun} ${row.id} is managed by ${row.manager}. Edit that manifest instead; a direct change would be undone.`,
    );
  }
  if (release) return null;
  return row.manager ?? adoptingManager({ management });
}

/** The manager that an unmanaged object gets when this call changes it. */
export const adoptingManager = ({ management: { manager, adopt } }: Managing): string | null =>
  adopt && manager !== undefined ? manager : null;

/** Whether a call that deletes removes the object, rather than releasing it. */
export const isRemoval = ({ management }: Managing): boolean => management.manager === undefined || !management.release;

/** The manager that an object gets when this call creates it. */
export const creatingManager = ({ management }: Managing): string | null => management.manager ?? null;

/**
 * Runs a statement that may write a `manager`. A manager has at most one live object of a kind, which a unique index ensures;
 * adopting a second one breaks it.
 * @throws PublicError 409 `managed_exists` instead of the database's complaint.
 */
export const adopting = <T>(
  { management }: Managing,
  thing: Pick<ManagedThing, "index">,
  work: () => Promise<T>,
): Promise<T> => asItsOnly(management.manager, thing, work);

/** The same where there is no call: `manager` is what the statement writes. */
export async function asItsOnly<T>(
  manager: string | null | undefined,
  { index }: Pick<ManagedThing, "index">,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUniqueViolation(error, index)) throw error;
    throw new PublicError(
      "managed_exists",
      `${manager ?? "The manager"} already manages another object of this kind; release or delete that one first.`,
      { cause: error },
    );
  }
}
