import type { ObjectKey } from "../runtime/object-key.ts";
import type { ManifestObject } from "../source/contract.ts";

/* Reads parts of a spec that may be invalid as a whole: an object with an invalid spec keeps its claim, and can still be deleted. */

const fieldsOf = ({ spec }: ManifestObject): Readonly<Record<string, unknown>> =>
  (spec ?? {}) as Readonly<Record<string, unknown>>;

/**
 * Returns the value if it is a string that the API accepts as a name, otherwise `undefined`. The API would reject a lookup with any other
 * value.
 */
const textIn = (value: unknown, lengthMax: number): string | undefined =>
  typeof value === "string" && value.length > 0 && value.length <= lengthMax ? value : undefined;

export const roleNameIn = (object: ManifestObject): string | undefined => textIn(fieldsOf(object).name, 128);

export const namespaceNameIn = (object: ManifestObject): string | undefined => textIn(fieldsOf(object).name, 512);

/** Returns `spec.identifier` of a RatelimitOverride. */
export const identifierIn = (object: ManifestObject): string | undefined => textIn(fieldsOf(object).identifier, 512);

/** Returns `spec.namespaceRef` of a RatelimitOverride. Without a namespace in it, the object's own namespace applies. */
export function namespaceRefOf(object: ManifestObject): ObjectKey | undefined {
  const { namespaceRef } = fieldsOf(object) as { namespaceRef?: { name?: unknown; namespace?: unknown } };
  if (typeof namespaceRef?.name !== "string") return undefined;
  const namespace = typeof namespaceRef.namespace === "string" ? namespaceRef.namespace : object.metadata.namespace;
  return { namespace, name: namespaceRef.name };
}

/** Returns `spec.policyRef` of an ApiKey. Without a namespace in it, the object's own namespace applies. */
export function policyRefOf(object: ManifestObject): ObjectKey | undefined {
  const { policyRef } = fieldsOf(object) as { policyRef?: { name?: unknown; namespace?: unknown } };
  if (typeof policyRef?.name !== "string") return undefined;
  const namespace = typeof policyRef.namespace === "string" ? policyRef.namespace : object.metadata.namespace;
  return { namespace, name: policyRef.name };
}

/** Returns `spec.secretRef.name` of an ApiKey. */
export function secretNameIn(object: ManifestObject): string | undefined {
  const { secretRef } = fieldsOf(object) as { secretRef?: { name?: unknown } };
  return typeof secretRef?.name === "string" ? secretRef.name : undefined;
}

/** Returns `spec.roles` of an ApiKey. */
export function rolesIn(object: ManifestObject): readonly string[] {
  const { roles } = fieldsOf(object);
  return Array.isArray(roles) ? roles.filter((role) => typeof role === "string") : [];
}

/** Returns `spec.api` of an ApiKeyPolicy. */
export function apiIn(object: ManifestObject): { readonly name?: string; readonly id?: string } {
  const { api } = fieldsOf(object) as { api?: { name?: unknown; id?: unknown } };
  return {
    ...(typeof api?.name === "string" ? { name: api.name } : {}),
    ...(typeof api?.id === "string" && /^[a-zA-Z0-9_]{8,255}$/.test(api.id) ? { id: api.id } : {}),
  };
}

/** Returns `spec.apiRef.id` of an ApiKey. */
export function apiRefIdIn(object: ManifestObject): string | undefined {
  const { apiRef } = fieldsOf(object) as { apiRef?: { id?: unknown } };
  return typeof apiRef?.id === "string" && /^[a-zA-Z0-9_]{8,255}$/.test(apiRef.id) ? apiRef.id : undefined;
}
