import type { DiscoveredKeys } from "./discovered-keys.ts";
import { findKuadrantRules } from "./kuadrant-rules.ts";
import { kubeObjectsOf, nameOf, secretsIn, secretText } from "./kubernetes.ts";

/* Imports keys from Kuadrant: the Secrets that have Authorino's label for API keys. The groups of a user become roles. */

const MANAGED_BY = "authorino.kuadrant.io/managed-by";
const USER_ID = "secret.kuadrant.io/user-id";
const PLAN_ID = "secret.kuadrant.io/plan-id";
const GROUPS = "kuadrant.io/groups";

export function findKuadrantKeys(documents: readonly unknown[], discovered: DiscoveredKeys): void {
  const objects = kubeObjectsOf(documents);
  for (const secret of secretsIn(objects)) {
    const from = `Secret ${nameOf(secret)}`;
    const { labels, annotations } = secret.metadata;
    if (labels[MANAGED_BY] !== "authorino") {
      discovered.leave(from, `it lacks the label ${MANAGED_BY}: authorino, so Authorino does not accept its key`);
      continue;
    }
    const owner = annotations[USER_ID];
    const roles = (annotations[GROUPS] ?? "")
      .split(",")
      .map((group) => group.trim())
      .filter((group) => group !== "");
    const plan = annotations[PLAN_ID] ?? labels[PLAN_ID];
    if (plan !== undefined) {
      discovered.note("plans are stored in the `meta` of keys: write their limits as namespaces and overrides");
    }
    discovered.add(from, secretText(secret, "api_key"), {
      enabled: true,
      name: secret.metadata.name,
      ...(owner === undefined ? {} : { externalId: owner }),
      ...(roles.length === 0 ? {} : { roles: [...new Set(roles)] }),
      ...(plan === undefined ? {} : { meta: { plan } }),
    });
  }
  findKuadrantRules(objects, discovered);
}
