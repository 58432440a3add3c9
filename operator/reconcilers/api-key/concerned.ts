import { formatKey } from "../../runtime/object-key.ts";
import { keyOf, type ManifestChange, type ManifestObject, type ManifestSource } from "../../source/contract.ts";
import { apiRefIdIn, policyRefOf, roleNameIn, rolesIn } from "../raw-spec.ts";
import { wasReady } from "../status.ts";

/** Keys that wait for a policy or a role, or may have lost one. Reports of sidecars change a policy's status and concern no key. */
export function apiKeysConcernedBy(
  change: ManifestChange,
  source: Pick<ManifestSource, "list">,
): readonly ManifestObject[] {
  const { kind, before, after } = change;
  const object = after ?? before;
  if (object === undefined || !isNews(before, after)) return [];
  if (kind === "ApiKeyPolicy") {
    const changed = formatKey(keyOf(object));
    return source.list("ApiKey").filter((key) => {
      const ref = policyRefOf(key);
      // Only the store knows which policy made an API that is named by its id.
      return ref === undefined ? apiRefIdIn(key) !== undefined : formatKey(ref) === changed;
    });
  }
  if (kind !== "Role") return [];
  const name = roleNameIn(object)?.toLowerCase();
  return source.list("ApiKey").filter((key) => rolesIn(key).some((role) => role.toLowerCase() === name));
}

function isNews(before: ManifestObject | undefined, after: ManifestObject | undefined): boolean {
  if (before === undefined || after === undefined) return true;
  const of = (object: ManifestObject) =>
    JSON.stringify([object.metadata.generation, object.metadata.deletionTimestamp, wasReady(object)]);
  return of(before) !== of(after);
}
