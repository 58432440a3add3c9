import { namespacesOf } from "../../../core/manifests/compile-policy.ts";
import { type ManifestChange, type ManifestObject, type ManifestSource, versionsOf } from "../../source/contract.ts";
import { apiIn, namespaceNameIn } from "../raw-spec.ts";

/** Policies that limit in a namespace that changed, or that may use the API of a maker that changed. */
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
  return isGrant ? policies.filter(usesForeignApi) : [];
}

/** Which object made the API that a policy names by its id only the store knows, so all such policies are looked at. */
const usesForeignApi = (policy: ManifestObject): boolean => apiIn(policy).id !== undefined;

const grantsOf = (maker: ManifestObject | undefined): unknown =>
  (maker?.spec as { allowedNamespaces?: unknown } | undefined)?.allowedNamespaces;
const text = (value: unknown): string => JSON.stringify(value ?? null);

/** Also of a spec that does not parse: too many hints do no harm. */
function namespaceNamesOf({ spec }: ManifestObject): string[] {
  const { rules } = (spec ?? {}) as { rules?: unknown };
  if (!Array.isArray(rules)) return [];
  return namespacesOf({ rules: rules.filter((rule) => Array.isArray(rule?.ratelimits)) });
}
