import { type ManifestChange, type ManifestObject, versionsOf } from "../../source/contract.ts";
import { type ObjectLookup, TO_API_BY_ID, toNamed } from "../indexes.ts";
import { namespaceNameIn } from "../raw-spec.ts";
import { selectorOf } from "./choose-policy.ts";
import { mayShare } from "./selection.ts";

/**
 * Returns the policies that a change may affect: those that use a changed namespace in their limits, and those that may use the API of a
 * changed object.
 */
export function policiesConcernedBy(change: ManifestChange, source: ObjectLookup): readonly ManifestObject[] {
  const referring = (reference: string) => source.having("ApiKeyPolicy", "reference", reference);
  if (change.kind === "RatelimitNamespace") {
    const names = new Set(versionsOf(change).map(namespaceNameIn));
    return [...names].flatMap((name) => (name === undefined ? [] : referring(toNamed(change.kind, name))));
  }
  if (change.kind !== "ApiKeyPolicy") return [];
  const isGrant = text(grantsOf(change.before)) !== text(grantsOf(change.after));
  const isSelection = text(selectionOf(change.before)) !== text(selectionOf(change.after));
  const versions = versionsOf(change);
  return [
    ...(isGrant ? referring(TO_API_BY_ID) : []),
    ...(isSelection ? versions.flatMap((version) => sharing(version, source)) : []),
  ];
}

/** Returns policies that may select some of the pods that `policy` selects. */
const sharing = (policy: ManifestObject, source: ObjectLookup): readonly ManifestObject[] =>
  source.having("ApiKeyPolicy", "namespace", policy.metadata.namespace).filter((other) => mayShare(policy, other));

/** Returns the fields that determine which of several policies guards a pod. */
const selectionOf = (policy: ManifestObject | undefined): unknown =>
  policy && [selectorOf(policy), policy.metadata.uid, policy.metadata.deletionTimestamp];

const grantsOf = (maker: ManifestObject | undefined): unknown =>
  (maker?.spec as { allowedNamespaces?: unknown } | undefined)?.allowedNamespaces;
const text = (value: unknown): string => JSON.stringify(value ?? null);
