import type { ManifestObject } from "../source/contract.ts";

/**
 * Several manifests can claim one name of the store: the one whose object was made first has it, and of two made at once the
 * one with the smaller uid. Gives that older rival of `object`, or undefined when the claim is `object`'s own.
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
