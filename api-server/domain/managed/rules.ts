import { PublicError } from "../../../core/errors.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import type { ManagedResource, ManagedRow } from "./resources.ts";

/*
 * Rules for changing managed objects (api-v2.md section 24.1). An object that a manifest created carries its manager's name. Other callers
 * that try to change it get an error that refers to the manifest, because the operator would revert the change anyway. This prevents
 * accidental conflicts between two writers, not attacks: any root key with the required permission can send the header.
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

/** Used for calls without manager headers, and for procedures that ignore these headers. Such a call can change only unmanaged objects. */
export const UNMANAGED: Management = { manager: undefined, adopt: false, release: false };

/**
 * Must be called before an object is changed or deleted, while its row is locked.
 * @returns the manager that the row must have after a change; `null` if the object is or becomes unmanaged.
 * @throws PublicError 409 `managed_by_manifest` if another manager manages it, or the call has no manager header.
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
 * Runs a statement that may write a `manager`. A manager can have only one live object of a kind; adopting a second one violates a unique
 * index.
 * @throws PublicError 409 `managed_exists` instead of that database error.
 */
export const adopting = <T>(
  { management }: Managing,
  resource: Pick<ManagedResource, "index">,
  work: () => Promise<T>,
): Promise<T> => asItsOnly(management.manager, resource, work);

/** Like `adopting`, but for a statement that writes the given manager. */
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
