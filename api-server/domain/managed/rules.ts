import { PublicError } from "../../../core/errors.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import type { ManagedResource, ManagedRow } from "./resources.ts";

/*
 * Rules for changing managed objects (api-v2.md section 24.1). An object that a manifest created carries its manager's name. Other callers
 * that try to change it get an error that refers to the manifest, because the operator would revert the change anyway. This prevents
 * mistakes between two writers, not attacks: any root key with the permission may send the header.
 */

/** Headers of a client that manages objects, such as the operator (api-v2.md section 24.1). */
export interface Management {
  /** Name of the manager, `<cluster>/<kind>/<namespace>/<name>`; `undefined` if the header is absent. */
  readonly manager: string | undefined;
  readonly adopt: boolean;
  readonly release: boolean;
}

/** An actor, or any object with the headers of `Management`. */
export interface Managing {
  readonly management: Management;
}

/** For calls without manager headers, and for procedures that ignore these headers: the call changes only unmanaged objects. */
export const UNMANAGED: Management = { manager: undefined, adopt: false, release: false };

/**
 * Call it before a managed object is changed or deleted, with the row locked.
 * @returns the manager that the row must have after a change: `null` if it is, or becomes, unmanaged.
 * @throws PublicError 409 `managed_by_manifest` if another manager manages it, or the caller names no manager.
 */
export function guardManaged(
  { management }: Managing,
  { noun }: Pick<ManagedResource, "noun">,
  row: ManagedRow,
): string | null {
  const { manager, release } = management;
  if (row.manager !== null && row.manager !== manager) {
    throw new PublicError(
      "managed_by_manifest",
      `The ${noun} ${row.id} is managed by ${row.manager}. Edit that manifest instead; a direct change would be undone.`,
    );
  }
  if (release) return null;
  return row.manager ?? adoptingManager({ management });
}

/** Returns the manager that an unmanaged object gets when this call changes it. */
export const adoptingManager = ({ management: { manager, adopt } }: Managing): string | null =>
  adopt && manager !== undefined ? manager : null;

/** Whether a delete call removes the object, rather than releasing it. */
export const isRemoval = ({ management }: Managing): boolean => management.manager === undefined || !management.release;

/** Returns the manager that an object gets when this call creates it. */
export const creatingManager = ({ management }: Managing): string | null => management.manager ?? null;

/**
 * Runs a statement that may write a `manager`. A unique index ensures that a manager has at most one live object of a kind; adopting a
 * second one violates it.
 * @throws PublicError 409 `managed_exists` instead of the database error.
 */
export const adopting = <T>(
  { management }: Managing,
  resource: Pick<ManagedResource, "index">,
  work: () => Promise<T>,
): Promise<T> => asItsOnly(management.manager, resource, work);

/** Like `adopting`, but takes the manager that the statement writes. */
export async function asItsOnly<T>(
  manager: string | null | undefined,
  { index }: Pick<ManagedResource, "index">,
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
