import type { Kind } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { Lookup } from "../source/indexed.ts";
import { labelFor } from "./names-in-messages.ts";
import { stalled, type Verdict } from "./plan.ts";
import { apiIn, identifierIn, namespaceNameIn, namespaceRefOf, roleNameIn, secretNameIn } from "./raw-spec.ts";

/*
 * Resolves conflicts between manifests that claim the same stored name. For every kind, this file determines which objects have the same
 * claim, and which of them owns it. The API decides whether the owner of a claim may adopt an existing stored object.
 *
 * core/manifests/check.ts checks a single manifest. source/directory/merge.ts chooses among documents with the same kind, namespace and
 * name, before anything is claimed.
 */

/**
 * Returns the claim of an object, even if its spec is invalid; `undefined` if it claims nothing. Two objects of one kind compete if their
 * claims are equal.
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
  // API names need not be unique. But if two policies of one team create APIs with the same name, that is a mistake.
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
 * Returns the older competitor of `object`; `undefined` if `object` owns the claim. The oldest object owns a claim, and of several objects
 * with the same age, the one with the smallest uid.
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

/** Returns the verdict if an older object has the same claim; `undefined` if `object` owns the claim. Pure. */
export function competitorConflict(
  object: ManifestObject,
  claimants: readonly ManifestObject[],
  sayCompetitor: (competitor: string) => string,
): Verdict | undefined {
  const competitor = olderCompetitor(object, claimants);
  return competitor && stalled("Conflict", sayCompetitor(labelFor(competitor, object.metadata.namespace)));
}

/** Returns the verdict if another object in the cluster has the reserved name. The operator does not change such an object. */
export const takenInCluster = (message: string): Verdict => stalled("Conflict", message);
