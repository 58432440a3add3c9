import { keyOf, type ManifestChange, type ManifestObject, versionsOf } from "../../source/contract.ts";
import { type ObjectLookup, TO_API_BY_ID, toNamed, toObject } from "../indexes.ts";
import { roleNameIn } from "../raw-spec.ts";
import { wasReady } from "../status.ts";

/**
 * Returns keys that wait for a policy or a role, or whose policy or role may no longer exist. A change of a policy's status because of
 * sidecar reports affects no key.
 */
export function apiKeysConcernedBy(change: ManifestChange, source: ObjectLookup): readonly ManifestObject[] {
  const { kind, before, after } = change;
  const object = after ?? before;
  if (object === undefined || !isNews(before, after)) return [];
  if (kind === "ApiKeyPolicy") {
    const references = [toObject("ApiKeyPolicy", keyOf(object)), TO_API_BY_ID];
    return references.flatMap((reference) => source.having("ApiKey", "reference", reference));
  }
  if (kind !== "Role") return [];
  const names = new Set(versionsOf(change).map((role) => roleNameIn(role)?.toLowerCase()));
  return [...names].flatMap((name) =>
    name === undefined ? [] : source.having("ApiKey", "reference", toNamed("Role", name)),
  );
}

function isNews(before: ManifestObject | undefined, after: ManifestObject | undefined): boolean {
  if (before === undefined || after === undefined) return true;
  const of = (object: ManifestObject) =>
    JSON.stringify([object.metadata.generation, object.metadata.deletionTimestamp, wasReady(object)]);
  return of(before) !== of(after);
}
