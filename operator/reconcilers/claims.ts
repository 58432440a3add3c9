import type { Kind } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { Lookup } from "../source/indexed.ts";
import { labelFor, managerFor } from "./names-in-messages.ts";
import { stalled, type Verdict } from "./plan.ts";
import { apiIn, identifierIn, namespaceNameIn, namespaceRefOf, roleNameIn, secretNameIn } from "./raw-spec.ts";

/*
 * Resolves conflicts between manifests that claim one stored name. For every kind, this file determines which objects have the same
 * claim, which of them owns the claim, and whether the owner adopts an existing object.
 *
 * core/manifests/check.ts checks a single manifest. source/directory/merge.ts chooses among documents with the same kind, namespace and
 * name, before anything is claimed.
 */

/**
 * Returns the claim of an object, from a spec that may be invalid; `undefined` if the object claims nothing. Two objects of one kind
 * compete if their claims are equal.
 */
const CLAIMS: Readonly<Record<Kind, (object: ManifestObject) => string | undefined>> = {
  // The database ignores case when it compares role names.
  Role: (object) => roleNameIn(object)?.toLowerCase(),
  RatelimitNamespace: namespaceNameIn,
  RatelimitOverride: (object) => {
    const ref = namespaceRefOf(object);
    const identifier = identifierIn(object);
    return ref === undefined || identifier === undefined ? undefined : JSON.stringify([ref, identifier]);
  },
  // A Secret can contain only one key.
  ApiKey: (object) => {
    const name = secretNameIn(object);
    return name === undefined ? undefined : JSON.stringify([object.metadata.namespace, name]);
  },
  // API names need not be unique, but two policies of one team that create APIs with the same name are a mistake.
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

/** Returns all objects with the same claim, including `object`; empty if `object` has no claim. */
export const competitorsOf = (object: ManifestObject, source: Lookup<"claim">): readonly ManifestObject[] =>
  claimantsOf(object.kind, [claimOf(object)], source);

/**
 * Returns the older competitor of `object`; `undefined` if `object` owns the claim. The oldest object owns a claim; of several with the
 * same age, the one with the smallest uid.
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

/** An object that claims a name, with the stored object and all manifests that have the same claim. */
export interface Claimed<Stored> {
  readonly object: ManifestObject;
  /** Manager name of the object, as stored in the database. */
  readonly manager: string;
  /** Stored object with the claimed name, or the one that this object manages. */
  readonly stored: Stored | undefined;
  /** All objects with the claim, including this one. */
  readonly claimants: readonly ManifestObject[];
}

interface Managed {
  readonly manager: string | undefined;
  /** Last manager of a stored object that currently has no manager. */
  readonly lastManager?: string | undefined;
}

/** Returns the stored object if the claim's manager manages it; otherwise `undefined`. */
export const ownOf = <Stored extends Managed>({
  manager,
  stored,
}: Pick<Claimed<Stored>, "manager" | "stored">): Stored | undefined =>
  stored?.manager === manager ? stored : undefined;

/** Status messages that explain how to resolve a conflict. A member is omitted if the kind cannot have the conflict. */
export interface ConflictTerms<Stored> {
  /** Message if an older object has the same claim. The argument contains only names that readers of this namespace may see. */
  readonly competitor?: (competitor: string) => string;
  /** Message if another manager owns the stored object. `manager` contains only names that readers of this namespace may see. */
  readonly managed?: (stored: Stored, manager: string) => string;
  /** Determines whether the manifest may adopt the stored object, if that object has no manager. */
  readonly unmanaged?: (stored: Stored) => Takeover;
}

export interface Takeover {
  /** Value of `spec.adopt`; `undefined` for kinds without this field. */
  readonly adopt: "Match" | "Override" | undefined;
  /** Message if the spec does not adopt the object. */
  readonly unasked: string;
  /** Message if `spec.adopt` allows adopting only an equal object and the stored one differs; `undefined` if it is equal. */
  readonly differs?: string | undefined;
}

/** Returns the reason why an object cannot have its claim; `undefined` if it can, or already has it. Pure. */
export function conflictOf<Stored extends Managed>(
  claimed: Claimed<Stored>,
  terms: ConflictTerms<Stored>,
): Verdict | undefined {
  const { object, claimants } = claimed;
  // An object keeps its stored resource, so that a new manifest never takes over a resource in use.
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
  // A manifest that is applied again takes back the resource that it orphaned.
  if (takeover === undefined || stored.lastManager === manager) return undefined;
  const { lastManager } = stored;
  if (lastManager !== undefined && !mayTakeOver(lastManager, manager)) return orphanedByOther(lastManager, manager);
  if (takeover.adopt === "Override") return undefined;
  return takeover.adopt === "Match" ? takeover.differs : takeover.unasked;
}

/** Returns the verdict if another object in the cluster has the reserved name. The operator does not change such an object. */
export const takenInCluster = (message: string): Verdict => stalled("Conflict", message);

/**
 * Returns whether an object may adopt a resource that another object orphaned. This is allowed within one namespace of a cluster, because
 * its writers could apply the former manifest again; all other objects need an explicit permission.
 */
export function mayTakeOver(lastManager: string, manager: string): boolean {
  const [lastCluster, , lastNamespace] = lastManager.split("/");
  const [cluster, , namespace] = manager.split("/");
  return cluster === lastCluster && namespace === lastNamespace;
}

/**
 * Returns the reason why an object may not refer to an unmanaged resource: an object of another namespace orphaned it and may take it back.
 * Returns `undefined` if the reference is allowed.
 */
export const reservedFor = ({ lastManager }: Pick<Managed, "lastManager">, manager: string): string | undefined =>
  lastManager === undefined || mayTakeOver(lastManager, manager) ? undefined : orphanedByOther(lastManager, manager);

/** Returns the message about a resource that an object of another namespace or cluster orphaned. */
const orphanedByOther = (lastManager: string, manager: string): string =>
  `It was released by ${managerFor(lastManager, manager)} and remains reserved for this manager. An administrator can allow the adoption with \`postern ownership release\` or \`postern ownership transfer\`.`;
