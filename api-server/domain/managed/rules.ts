import { PublicError } from "../../../core/errors.ts";
import type { Call } from "../../procedure.ts";
import { isUniqueViolation } from "../../store/unique-violation.ts";

/*
 * Managed objects (api-v2.md section 24.1). An object that a manifest made carries its manager's name; whoever else would
 * change it is told to edit the manifest, because the operator would undo the change anyway. This guards against
 * mistakes between two writers, not against attackers: any root key with the permission may send the header.
 */

/** `<cluster>/<kind>/<namespace>/<name>` of a manifest. */
export const MANAGER = /^[a-zA-Z0-9._-]{1,253}(?:\/[a-zA-Z0-9._-]{1,253}){3}$/;

type Managing = Pick<Call<unknown>, "management">;

/**
 * To be called before a managed object is changed or deleted, with the row locked.
 * @param objectLabel names the object at the start of a sentence, such as `The role role_x`.
 * @returns the manager that the row must have after a change: null when it is, or becomes, unmanaged.
 * @throws PublicError 409 `managed_elsewhere` when somebody else manages it, or the caller names no manager.
 */
export function guardManaged(
  { management }: Managing,
  row: { readonly manager: string | null },
  objectLabel: string,
): string | null {
  const { manager, adopt, release } = management;
  if (row.manager !== null && row.manager !== manager) {
    throw new PublicError(
      "managed_elsewhere",
      `${objectLabel} is managed by ${row.manager}. Edit that manifest instead; a direct change would be undone.`,
    );
  }
  if (manager === undefined) return null;
  if (release) return null;
  return row.manager ?? (adopt ? manager : null);
}

/**
 * What a delete does to an object, with the row locked: a call that lets its object go leaves it where it is, unmanaged. There
 * is nothing to do, and nothing to log, when nobody manages it.
 * @throws PublicError 409 `managed_elsewhere`.
 */
export async function deleteOrRelease(
  { management }: Managing,
  row: { readonly manager: string | null },
  objectLabel: string,
  acts: { readonly remove: () => Promise<void>; readonly release: () => Promise<void> },
): Promise<void> {
  guardManaged({ management }, row, objectLabel);
  if (isRemoval({ management })) await acts.remove();
  else if (row.manager !== null) await acts.release();
}

/** Whether a call that deletes does so, and does not merely let go of the object. */
export const isRemoval = ({ management }: Managing): boolean => management.manager === undefined || !management.release;

/** The manager that an object gets when this call creates it. */
export const creatingManager = ({ management }: Managing): string | null => management.manager ?? null;

/**
 * Runs a statement that may write a `manager`. A manager has at most one live object of a kind, which a unique index
 * `<table>_manager` ensures; adopting a second one breaks it.
 * @throws PublicError 409 `managed_exists` instead of the database's complaint.
 */
export async function adopting<T>(
  { management }: Managing,
  index: `${string}_manager`,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUniqueViolation(error, index)) throw error;
    throw new PublicError(
      "managed_exists",
      `${management.manager ?? "The manager"} already manages another object of this kind; release or delete that one first.`,
      { cause: error },
    );
  }
}
