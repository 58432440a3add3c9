import type { Kind } from "../../core/manifests/index.ts";
import type { ManifestObject, ManifestSource } from "../source/contract.ts";
import { stalled, type Verdict } from "./plan.ts";
import { apiIn, identifierIn, namespaceNameIn, namespaceRefOf, roleNameIn } from "./raw-spec.ts";

/*
 * Two manifests that claim one name in the store: which objects do, which of them has it, and whether it takes over what is there
 * already, is decided here for every kind.
 *
 * Two others decide something else. core/manifests/check.ts looks at one manifest alone. source/directory/merge.ts chooses among
 * documents of one identity (kind, namespace, name): a cluster would have one object of them, and here they become one before anything
 * is claimed.
 */

/**
 * What the objects of a kind want to be alone in having, read from a spec that need not be valid; undefined for an object that
 * claims nothing. Two objects of one kind are rivals when their texts are equal.
 */
const CLAIMS: Readonly<Record<Kind, (object: ManifestObject) => string | undefined>> = {
  // The store compares names of roles without regard to case.
  Role: (object) => roleNameIn(object)?.toLowerCase(),
  RatelimitNamespace: namespaceNameIn,
  RatelimitOverride: (object) => {
    const ref = namespaceRefOf(object);
    const identifier = identifierIn(object);
    return ref === undefined || identifier === undefined ? undefined : JSON.stringify([ref, identifier]);
  },
  // Names of APIs need not be unique, but two policies of one team that make an API each under one name is a mistake.
  ApiKeyPolicy: (object) => {
    const { name } = apiIn(object);
    return name === undefined ? undefined : JSON.stringify([object.metadata.namespace, name]);
  },
};

export const claimOf = (object: ManifestObject): string | undefined => CLAIMS[object.kind](object);

/** All objects of a kind that make one of these claims. */
export function claimantsOf(
  kind: Kind,
  claims: readonly (string | undefined)[],
  source: Pick<ManifestSource, "list">,
): readonly ManifestObject[] {
  const wanted = new Set(claims);
  return source.list(kind).filter((object) => {
    const claim = claimOf(object);
    return claim !== undefined && wanted.has(claim);
  });
}

/** All objects that claim what this one claims, itself too; none when it claims nothing. */
export const rivalsOf = (object: ManifestObject, source: Pick<ManifestSource, "list">): readonly ManifestObject[] =>
  claimantsOf(object.kind, [claimOf(object)], source);

/**
 * The claim is that of the object that was made first, and of two made at once that of the one with the smaller uid. Returns that
 * older rival of `object`, undefined when the claim is `object`'s own.
 */
export function olderRival(object: ManifestObject, claimants: readonly ManifestObject[]): ManifestObject | undefined {
  let oldest = object;
  for (const claimant of claimants) if (isOlder(claimant, oldest)) oldest = claimant;
  return oldest.metadata.uid === object.metadata.uid ? undefined : oldest;
}

function isOlder(a: ManifestObject, b: ManifestObject): boolean {
  const aMs = Date.parse(a.metadata.creationTimestamp);
  const bMs = Date.parse(b.metadata.creationTimestamp);
  return aMs === bMs ? a.metadata.uid < b.metadata.uid : aMs < bMs;
}

/** An object, and what the store and other objects have of what it claims. */
export interface Claimed<Stored> {
  readonly object: ManifestObject;
  /** Who the object is in the store. */
  readonly manager: string;
  /** What the store has under the claim, or what the object has there. */
  readonly stored: Stored | undefined;
  /** All objects that make the claim, this one too. */
  readonly claimants: readonly ManifestObject[];
}

interface Managed {
  readonly manager: string | undefined;
}

/** What the object has under its claim; undefined when nothing, or when that is another's. */
export const ownOf = <Stored extends Managed>({
  manager,
  stored,
}: Pick<Claimed<Stored>, "manager" | "stored">): Stored | undefined =>
  stored?.manager === manager ? stored : undefined;

/** Messages for the status, which say what to do about a conflict. A member that a kind leaves out is no conflict for that kind. */
export interface ConflictTerms<Stored> {
  /** Another object is older and has the same claim; `rival` is its label. */
  readonly rival?: (rival: string) => string;
  /** Another manager has it in the store. */
  readonly managed?: (stored: Stored, manager: string) => string;
  /** It is in the store, and no manifest manages it. */
  readonly unmanaged?: (stored: Stored) => Takeover;
}

export interface Takeover {
  /** `spec.adopt`, of a kind that has it. */
  readonly adopt: "match" | "override" | undefined;
  /** The message when the spec does not ask for it. */
  readonly unasked: string;
  /** The message when only what equals the spec may be taken over, and this differs; undefined when it is equal. */
  readonly differs?: string | undefined;
}

/** Pure. Why an object cannot have what it claims; undefined when it can, or has it already. */
export function conflictOf<Stored extends Managed>(
  claimed: Claimed<Stored>,
  terms: ConflictTerms<Stored>,
): Verdict | undefined {
  const { object, stored, claimants } = claimed;
  // An object keeps what it has in the store: a newcomer must not take away what is in force.
  if (ownOf(claimed) !== undefined) return undefined;
  const rival = olderRival(object, claimants);
  const message = rival === undefined ? heldBack(stored, terms) : terms.rival?.(labelOf(rival));
  return message === undefined ? undefined : stalled("Conflict", message);
}

function heldBack<Stored extends Managed>(
  stored: Stored | undefined,
  terms: ConflictTerms<Stored>,
): string | undefined {
  if (stored === undefined) return undefined;
  if (stored.manager !== undefined) return terms.managed?.(stored, stored.manager);
  const takeover = terms.unmanaged?.(stored);
  if (takeover === undefined || takeover.adopt === "override") return undefined;
  return takeover.adopt === "match" ? takeover.differs : takeover.unasked;
}

/** `Role shop/editor`, for messages. */
export const labelOf = ({ kind, metadata }: ManifestObject): string => `${kind} ${metadata.namespace}/${metadata.name}`;
