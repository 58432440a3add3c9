import type { Kind } from "../../core/manifests/index.ts";
import type { ManifestObject, ManifestSource } from "../source/contract.ts";
import { apiIn, identifierIn, namespaceNameIn, namespaceRefOf, roleNameIn } from "./raw-spec.ts";

/*
 * Two manifests that claim one name in the store: which objects do, and which of them has it, is decided here for every kind.
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
  const wanted = new Set(claims.filter((claim) => claim !== undefined));
  if (wanted.size === 0) return [];
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

/** `Role shop/editor`, for messages. */
export const labelOf = ({ kind, metadata }: ManifestObject): string => `${kind} ${metadata.namespace}/${metadata.name}`;
