import { type ErrorKind, PublicError } from "../../../../core/errors.ts";
import { parseManager, requireManager } from "../../../../core/manifests/manager.ts";

/* Rules that determine which stored objects a manifest is allowed to manage or refer to. Pure. */

export interface Claimant {
  /** Manager of the manifest, `<cluster>/<kind>/<namespace>/<name>`. */
  readonly manager: string;
  /**
   * `spec.adopt`, which determines the unmanaged objects that the manifest adopts: only equal ones (`Match`), any (`Override`) or none
   * (`undefined`).
   */
  readonly adopt: "Match" | "Override" | undefined;
  /** Whether the manifest is restricted to objects that it already manages, because an older manifest claims the same name. */
  readonly onlyIfManaged: boolean;
}

/**
 * Throws if the manifest is restricted to objects that it already manages.
 * @throws PublicError 409 `not_managed`.
 */
export function requireManaged({ onlyIfManaged }: Pick<Claimant, "onlyIfManaged">, field: string): void {
  if (onlyIfManaged) throw refuse("not_managed", field, "The manifest does not manage this object yet.");
}

/** A stored object with its manager or, if it has none, its last manager. */
export interface Owned {
  readonly id: string;
  readonly manager: string | null;
  readonly lastManager: string | undefined;
}

/** Returns an error about one field of the spec. */
export const refuse = (kind: ErrorKind, field: string, message: string): PublicError =>
  new PublicError(kind, message, { errors: [{ location: `body.spec.${field}`, message }] });

export interface Claim {
  /** Label of the object in error messages, such as `The role editor`. */
  readonly label: string;
  /** Field of the spec that identifies the object. */
  readonly field: string;
  /** Advice that ends a message, such as `or choose another spec.name`. */
  readonly otherwise: string;
  /** Whether the stored object equals the spec. */
  readonly isEqual: boolean;
}

/**
 * Throws unless the manifest manages the stored object or is allowed to adopt it.
 * @throws PublicError 409 `managed_by_manifest`, `unmanaged_exists` or `not_managed`.
 */
export function requireClaim(claimant: Claimant, stored: Owned, claim: Claim): void {
  const { manager, adopt } = claimant;
  const { label, field, otherwise, isEqual } = claim;
  if (stored.manager === manager) return;
  requireManaged(claimant, field);
  if (stored.manager !== null) {
    const message = `${label} is managed by ${stored.manager}. Edit that manifest, ${otherwise}.`;
    throw refuse("managed_by_manifest", field, message);
  }
  // A manifest that is applied again takes back the object that it released.
  if (stored.lastManager === manager) return;
  const reserved = reservationOf(stored, manager);
  if (reserved !== undefined) throw refuse("unmanaged_exists", field, `${label} already exists. ${reserved}`);
  if (adopt === "Override" || (adopt === "Match" && isEqual)) return;
  throw refuse(
    "unmanaged_exists",
    field,
    adopt === undefined
      ? `${label} already exists and is unmanaged. Set spec.adopt to Match or Override to adopt it, ${otherwise}.`
      : `${label} already exists, is unmanaged, and differs from this spec. Make the spec equal, or set spec.adopt to Override.`,
  );
}

/**
 * Returns why the manifest is not allowed to use an unmanaged object: a manifest of another namespace or cluster released the object and
 * can take it back. Within one namespace, no such reservation is needed, because whoever can write there could also apply the former
 * manifest again.
 */
export function reservationOf({ lastManager }: Pick<Owned, "lastManager">, manager: string): string | undefined {
  if (lastManager === undefined || areNeighbours(lastManager, manager)) return undefined;
  return `It was released by ${lastManager} and remains reserved for this manager. An administrator can allow the adoption with \`postern ownership release\` or \`postern ownership transfer\`.`;
}

/**
 * Throws unless the manifest is allowed to refer to the stored object.
 * @param mayReferTo managers of other namespaces whose manifests allow the reference.
 * @throws PublicError 409 `reference_not_allowed`.
 */
export function requireReference(
  { manager, mayReferTo }: { readonly manager: string; readonly mayReferTo: readonly string[] },
  stored: Pick<Owned, "manager" | "lastManager">,
  { label, field }: Pick<Claim, "label" | "field">,
): void {
  const { manager: owner } = stored;
  if (owner === null) {
    const reserved = reservationOf(stored, manager);
    if (reserved === undefined) return;
    throw refuse("reference_not_allowed", field, `${label} does not belong to this namespace. ${reserved}`);
  }
  if (areNeighbours(owner, manager) || mayReferTo.includes(owner)) return;
  const { namespace } = requireManager(manager);
  throw refuse(
    "reference_not_allowed",
    field,
    `${label} is managed by ${owner}, which does not allow references from the namespace ${namespace}. Add ${namespace} to its spec.allowedNamespaces.`,
  );
}

/** Whether two managers are manifests of one namespace of one cluster. */
function areNeighbours(a: string, b: string): boolean {
  const [one, other] = [parseManager(a), parseManager(b)];
  return one !== undefined && one.cluster === other?.cluster && one.namespace === other.namespace;
}
