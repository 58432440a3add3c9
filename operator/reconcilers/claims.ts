import type { Kind } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { Lookup } from "../source/indexed.ts";
import { labelFor, managerFor } from "./names-in-messages.ts";
import { stalled, type Verdict } from "./plan.ts";
import { apiIn, identifierIn, namespaceNameIn, namespaceRefOf, roleNameIn, secretNameIn } from "./raw-spec.ts";

/*
 * Two manifests that claim one name in the store: for every kind, this file decides which objects do, which of them owns it, and
 * whether it takes over an existing object.
 *
 * Two other files decide other questions. core/manifests/check.ts checks a single manifest. source/directory/merge.ts chooses among
 * documents of one identity (kind, namespace, name): a cluster would have one object of them, and they become one before anything
 * is claimed.
 */

/**
 * The claim of an object, read from a spec that need not be valid; undefined for an object without a claim. Two objects of
 * one kind are rivals when their claims are equal.
 */
const CLAIMS: Readonly<Record<Kind, (object: ManifestObject) => string | undefined>> = {
  // The store compares names of roles ignoring case.
  Role: (object) => roleNameIn(object)?.toLowerCase(),
  RatelimitNamespace: namespaceNameIn,
  RatelimitOverride: (object) => {
    const ref = namespaceRefOf(object);
    const identifier = identifierIn(object);
    return ref === undefined || identifier === undefined ? undefined : JSON.stringify([ref, identifier]);
  },
  // A Secret holds one key.
  ApiKey: (object) => {
    const name = secretNameIn(object);
    return name === undefined ? undefined : JSON.stringify([object.metadata.namespace, name]);
  },
  // Names of APIs need not be unique, but two policies of one team that each make an API with one name are a mistake.
  ApiKeyPolicy: (object) => {
    const { name } = apiIn(object);
    return name === undefined ? undefined : JSON.stringify([object.metadata.namespace, name]);
  },
};

export const claimOf = (object: ManifestObject): string | undefined => CLAIMS[object.kind](object);

/** All objects of a kind with one of these claims. */
export function claimantsOf(
  kind: Kind,
  claims: readonly (string | undefined)[],
  source: Lookup<"claim">,
): readonly ManifestObject[] {
  const wanted = new Set(claims.filter((claim) => claim !== undefined));
  return [...wanted].flatMap((claim) => source.having(kind, "claim", claim));
}

/** All objects with the same claim as this one, including itself; none when it has no claim. */
export const rivalsOf = (object: ManifestObject, source: Lookup<"claim">): readonly ManifestObject[] =>
  claimantsOf(object.kind, [claimOf(object)], source);

/**
 * The oldest object owns the claim; of two with the same age, the one with the smaller uid. Returns the older rival of
 * `object`, or undefined when `object` owns the claim.
 */
export function olderRival(object: ManifestObject, claimants: readonly ManifestObject[]): ManifestObject | undefined {
  const oldest = oldestOf(object, claimants);
  return oldest.metadata.uid === object.metadata.uid ? undefined : oldest;
}

/** The one of several objects that owns what all of them claim. */
export function oldestOf(object: ManifestObject, others: readonly ManifestObject[]): ManifestObject {
  let oldest = object;
  for (const other of others) if (isOlder(other, oldest)) oldest = other;
  return oldest;
}

function isOlder(a: ManifestObject, b: ManifestObject): boolean {
  const aMs = Date.parse(a.metadata.creationTimestamp);
  const bMs = Date.parse(b.metadata.creationTimestamp);
  return aMs === bMs ? a.metadata.uid < b.metadata.uid : aMs < bMs;
}

/** An object, and what the store and other objects have for its claim. */
export interface Claimed<Stored> {
  readonly object: ManifestObject;
  /** The object's manager name in the store. */
  readonly manager: string;
  /** The store's object for the claim, or the one that this object manages. */
  readonly stored: Stored | undefined;
  /** All objects with the claim, including this one. */
  readonly claimants: readonly ManifestObject[];
}

interface Managed {
  readonly manager: string | undefined;
  /** Of an object without a manager: who left it in the store. */
  readonly lastManager?: string | undefined;
}

/** The store's object for the claim if this object manages it; otherwise undefined. */
export const ownOf = <Stored extends Managed>({
  manager,
  stored,
}: Pick<Claimed<Stored>, "manager" | "stored">): Stored | undefined =>
  stored?.manager === manager ? stored : undefined;

/** Messages for the status, which say how to resolve a conflict. A kind that leaves a member out does not have that conflict. */
export interface ConflictTerms<Stored> {
  /** Another object is older and has the same claim; `rival` is what readers of this namespace may know of it. */
  readonly rival?: (rival: string) => string;
  /** Another manager owns it in the store; `manager` is what readers of this namespace may know of it. */
  readonly managed?: (stored: Stored, manager: string) => string;
  /** It is in the store without a manager. */
  readonly unmanaged?: (stored: Stored) => Takeover;
}

export interface Takeover {
  /** `spec.adopt`, for kinds that have it. */
  readonly adopt: "match" | "override" | undefined;
  /** The message when the spec does not adopt it. */
  readonly unasked: string;
  /** The message when only an equal object may be adopted, and this one differs; undefined when it is equal. */
  readonly differs?: string | undefined;
}

/** Returns why an object cannot have what it claims; undefined when it can, or has it already. Pure. */
export function conflictOf<Stored extends Managed>(
  claimed: Claimed<Stored>,
  terms: ConflictTerms<Stored>,
): Verdict | undefined {
  const { object, claimants } = claimed;
  // An object keeps what it has in the store: a new manifest must not take over what is in force.
  if (ownOf(claimed) !== undefined) return undefined;
  const rival = olderRival(object, claimants);
  const message =
    rival === undefined ? heldBack(claimed, terms) : terms.rival?.(labelFor(rival, object.metadata.namespace));
  return message === undefined ? undefined : stalled("Conflict", message);
}

function heldBack<Stored extends Managed>(
  { stored, manager }: Claimed<Stored>,
  terms: ConflictTerms<Stored>,
): string | undefined {
  if (stored === undefined) return undefined;
  if (stored.manager !== undefined) return terms.managed?.(stored, managerFor(stored.manager, manager));
  const takeover = terms.unmanaged?.(stored);
  // A manifest that comes back finds what it left.
  if (takeover === undefined || stored.lastManager === manager) return undefined;
  const { lastManager } = stored;
  if (lastManager !== undefined && !mayTakeOver(lastManager, manager)) return leftByOther(lastManager, manager);
  if (takeover.adopt === "override") return undefined;
  return takeover.adopt === "match" ? takeover.differs : takeover.unasked;
}

/** Something in the cluster that is not the object's has the name of what should be made for it, and stays as it is. */
export const takenInCluster = (message: string): Verdict => stalled("Conflict", message);

/**
 * Whether an object may have what another one left in the store: within a namespace of a cluster it may, because who may write there
 * could bring the former manifest back. Others need leave.
 */
export function mayTakeOver(lastManager: string, manager: string): boolean {
  const [lastCluster, , lastNamespace] = lastManager.split("/");
  const [cluster, , namespace] = manager.split("/");
  return cluster === lastCluster && namespace === lastNamespace;
}

/**
 * Why an object may not refer to something in the store that nothing manages: an object of another namespace left it, and comes back to
 * it. undefined when it may.
 */
export const reservedFor = ({ lastManager }: Pick<Managed, "lastManager">, manager: string): string | undefined =>
  lastManager === undefined || mayTakeOver(lastManager, manager) ? undefined : leftByOther(lastManager, manager);

/** For what an object of another namespace, or of another cluster, left in the store. */
const leftByOther = (lastManager: string, manager: string): string =>
  `It was left in the store by ${managerFor(lastManager, manager)}, and stays reserved for it. An administrator gives leave with \`postern managed release\` or \`postern managed transfer\`.`;
