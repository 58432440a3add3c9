import type { Kind } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { Lookup } from "../source/indexed.ts";
import { labelFor, managerFor } from "./names-in-messages.ts";
import { stalled, type Verdict } from "./plan.ts";
import { apiIn, identifierIn, namespaceNameIn, namespaceRefOf, roleNameIn, secretNameIn } from "./raw-spec.ts";

/*
 * Resolves conflicts between manifests that claim one stored name: for every kind, this file decides which objects have the same claim,
 * which of them owns it, and whether it adopts an existing object.
 *
 * core/manifests/check.ts checks a single manifest. source/directory/merge.ts chooses among documents with the same kind, namespace and
 * name, before anything is claimed.
 */

/**
 * Returns the claim of an object, from a spec that may be invalid; `undefined` for an object without a claim. Two objects of one kind
 * compete if their claims are equal.
 */
const CLAIMS: Readonly<Record<Kind, (object: ManifestObject) => string | undefined>> = {
  // The database compares role names ignoring case.
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
  // API names need not be unique, but two policies of one team that create APIs of the same name are a mistake.
  ApiKeyPolicy: (object) => {
    const { name } = apiIn(object);
    return name === undefined ? undefined : JSON.stringify([object.metadata.namespace, name]);
  },
};

export const claimOf = (object: ManifestObject): string | undefined => CLAIMS[object.kind](object);

/** Returns all objects of a kind with one of these claims. */
export function claimantsOf(
  kind: Kind,
  claims: readonly (string | undefined)[],
  source: Lookup<"claim">,
): readonly ManifestObject[] {
  const desired = new Set(claims.filter((claim) => claim !== undefined));
  return [...desired].flatMap((claim) => source.having(kind, "claim", claim));
}

/** Returns all objects with the same claim, including this one; empty if it has no claim. */
export const competitorsOf = (object: ManifestObject, source: Lookup<"claim">): readonly ManifestObject[] =>
  claimantsOf(object.kind, [claimOf(object)], source);

/**
 * Returns the older competitor of `object`; `undefined` if `object` owns the claim. The oldest object owns a claim; if two have the same
 * age, the one with the smaller uid.
 */
export function olderCompetitor(
  object: ManifestObject,
  claimants: readonly ManifestObject[],
): ManifestObject | undefined {
  const oldest = oldestOf(object, claimants);
  return oldest.metadata.uid === object.metadata.uid ? undefined : oldest;
}

/** Returns the owner of a claim that several objects share. */
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

/** An object with the stored object and the other manifests for its claim. */
export interface Claimed<Stored> {
  readonly object: ManifestObject;
  /** Manager name of the object in the database. */
  readonly manager: string;
  /** The stored object for the claim, or the one that this object manages. */
  readonly stored: Stored | undefined;
  /** All objects with the claim, including this one. */
  readonly claimants: readonly ManifestObject[];
}

interface Managed {
  readonly manager: string | undefined;
  /** Last manager of a stored object that has none now. */
  readonly lastManager?: string | undefined;
}

/** Returns the stored object for the claim if this object manages it; otherwise `undefined`. */
export const ownOf = <Stored extends Managed>({
  manager,
  stored,
}: Pick<Claimed<Stored>, "manager" | "stored">): Stored | undefined =>
  stored?.manager === manager ? stored : undefined;

/** Status messages that explain how to resolve a conflict. An omitted member means that the kind cannot have that conflict. */
export interface ConflictTerms<Stored> {
  /** An older object has the same claim. The argument reveals only what readers of this namespace may know. */
  readonly competitor?: (competitor: string) => string;
  /** Another manager owns the stored object. `manager` reveals only what readers of this namespace may know. */
  readonly managed?: (stored: Stored, manager: string) => string;
  /** The stored object has no manager. */
  readonly unmanaged?: (stored: Stored) => Takeover;
}

export interface Takeover {
  /** `spec.adopt`, for kinds that have it. */
  readonly adopt: "Match" | "Override" | undefined;
  /** Message if the spec does not adopt the object. */
  readonly unasked: string;
  /** Message if only an equal object may be adopted and this one differs; `undefined` if it is equal. */
  readonly differs?: string | undefined;
}

/** Returns why an object cannot have its claim; `undefined` if it can, or already has it. Pure. */
export function conflictOf<Stored extends Managed>(
  claimed: Claimed<Stored>,
  terms: ConflictTerms<Stored>,
): Verdict | undefined {
  const { object, claimants } = claimed;
  // An object keeps its stored resource: a new manifest must not take over an active one.
  if (ownOf(claimed) !== undefined) return undefined;
  const competitor = olderCompetitor(object, claimants);
  const message =
    competitor === undefined
      ? heldBack(claimed, terms)
      : terms.competitor?.(labelFor(competitor, object.metadata.namespace));
  return message === undefined ? undefined : stalled("Conflict", message);
}

function heldBack<Stored extends Managed>(
  { stored, manager }: Claimed<Stored>,
  terms: ConflictTerms<Stored>,
): string | undefined {
  if (stored === undefined) return undefined;
  if (stored.manager !== undefined) return terms.managed?.(stored, managerFor(stored.manager, manager));
  const takeover = terms.unmanaged?.(stored);
  // A manifest that is applied again gets its orphaned resource back.
  if (takeover === undefined || stored.lastManager === manager) return undefined;
  const { lastManager } = stored;
  if (lastManager !== undefined && !mayTakeOver(lastManager, manager)) return orphanedByOther(lastManager, manager);
  if (takeover.adopt === "Override") return undefined;
  return takeover.adopt === "Match" ? takeover.differs : takeover.unasked;
}

/** A foreign object in the cluster has the reserved name. The operator does not change it. */
export const takenInCluster = (message: string): Verdict => stalled("Conflict", message);

/**
 * Whether an object may adopt what another one orphaned. Allowed within one namespace of a cluster, because its writers could apply the
 * former manifest again; other objects need an explicit permission.
 */
export function mayTakeOver(lastManager: string, manager: string): boolean {
  const [lastCluster, , lastNamespace] = lastManager.split("/");
  const [cluster, , namespace] = manager.split("/");
  return cluster === lastCluster && namespace === lastNamespace;
}

/**
 * Returns why an object may not refer to an unmanaged resource: an object of another namespace orphaned it and may return. `undefined` if
 * the reference is allowed.
 */
export const reservedFor = ({ lastManager }: Pick<Managed, "lastManager">, manager: string): string | undefined =>
  lastManager === undefined || mayTakeOver(lastManager, manager) ? undefined : orphanedByOther(lastManager, manager);

/** Message about a resource that an object of another namespace or cluster orphaned. */
const orphanedByOther = (lastManager: string, manager: string): string =>
  `It was left in the store by ${managerFor(lastManager, manager)}, and stays reserved for it. An administrator gives leave with \`postern ownership release\` or \`postern ownership transfer\`.`;
