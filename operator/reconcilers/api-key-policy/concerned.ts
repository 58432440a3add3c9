import { namespacesOf } from "../../../core/manifests/compile-policy.ts";
import { type ManifestChange, type ManifestObject, type ManifestSource, versionsOf } from "../../source/contract.ts";
import { apiIn, namespaceNameIn } from "../raw-spec.ts";
import { selectorOf } from "./choose-policy.ts";
import { mayShare } from "./selection.ts";

/** Policies with limits in a namespace that changed, or that may use the API of an object that changed. */
export function policiesConcernedBy(
  change: ManifestChange,
  source: Pick<ManifestSource, "list">,
): readonly ManifestObject[] {
  const policies = source.list("ApiKeyPolicy");
  if (change.kind === "RatelimitNamespace") {
    const names = new Set(versionsOf(change).map(namespaceNameIn));
    return policies.filter((policy) => namespaceNamesOf(policy).some((name) => names.has(name)));
  }
  if (change.kind !== "ApiKeyPolicy") return [];
  const isGrant = text(grantsOf(change.before)) !== text(grantsOf(change.after));
  const isSelection = text(selectionOf(change.before)) !== text(selectionOf(change.after));
  const versions = versionsOf(change);
  return policies.filter(
    (policy) =>
      (isGrant && usesForeignApi(policy)) || (isSelection && versions.some((version) => mayShare(version, policy))),
  );
}

/** Only the store knows which object made an API that a policy names by its id, so all such policies are reconciled. */
const usesForeignApi = (policy: ManifestObject): boolean => apiIn(policy).id !== undefined;

/** What decides which policy guards a pod that several select. */
const selectionOf = (policy: ManifestObject | undefined): unknown =>
  policy && [selectorOf(policy), policy.metadata.uid, policy.metadata.deletionTimestamp];

const grantsOf = (maker: ManifestObject | undefined): unknown =>
  (maker?.spec as { allowedNamespaces?: unknown } | undefined)?.allowedNamespaces;
const text = (value: unknown): string => JSON.stringify(value ?? null);

/** Also for a spec that does not parse, because too many reconciles do no harm. */
function namespaceNamesOf({ spec }: ManifestObject): string[] {
  const { rules } = (spec ?? {}) as { rules?: unknown };
  if (!Array.isArray(rules)) return [];
  return namespacesOf({ rules: rules.filter((rule) => Array.isArray(rule?.ratelimits)) });
}
