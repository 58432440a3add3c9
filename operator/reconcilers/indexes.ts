import type { Kind } from "../../core/manifests/index.ts";
import { formatKey, type ObjectKey } from "../runtime/object-key.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { IndexedSource, Indexes, Lookup } from "../source/indexed.ts";
import { claimOf } from "./claims.ts";
import { apiIn, apiRefIdIn, namespaceRefOf, policyRefOf, rolesIn } from "./raw-spec.ts";

/* Names of the reconcilers' indexes. With them, a reconcile of one object does not have to list all objects. */

export type IndexName = "claim" | "namespace" | "reference";
export type ObjectLookup = Lookup<IndexName>;
export type ObjectSource = IndexedSource<IndexName>;

/** Returns the index value of a reference to an object by its Kubernetes name. */
export const toObject = (kind: Kind, key: ObjectKey): string => `object ${kind} ${formatKey(key)}`;
/** Returns the index value of a reference to an object by its stored name. */
export const toNamed = (kind: Kind, name: string): string => `named ${kind} ${name}`;
/**
 * Index value shared by all references to an API by id. Only the database records which policy created an API, so the references cannot be
 * told apart.
 */
export const TO_API_BY_ID = "api by id";

/**
 * Functions that return the references of an object, even if its spec is invalid. An extra reference is harmless, because it only causes an
 * unnecessary reconcile.
 */
const REFERENCES: Readonly<Record<Kind, (object: ManifestObject) => readonly string[]>> = {
  Role: () => [],
  RatelimitNamespace: () => [],
  RatelimitOverride: (override) => {
    const ref = namespaceRefOf(override);
    return ref === undefined ? [] : [toObject("RatelimitNamespace", ref)];
  },
  ApiKeyPolicy: (policy) => [
    ...limitedIn(policy).map((name) => toNamed("RatelimitNamespace", name)),
    ...(apiIn(policy).id === undefined ? [] : [TO_API_BY_ID]),
  ],
  ApiKey: (key) => {
    const ref = policyRefOf(key);
    return [
      ...(ref === undefined ? [] : [toObject("ApiKeyPolicy", ref)]),
      ...(ref === undefined && apiRefIdIn(key) !== undefined ? [TO_API_BY_ID] : []),
      ...rolesIn(key).map((role) => toNamed("Role", role.toLowerCase())),
    ];
  },
};

export const INDEXES: Indexes<IndexName> = {
  claim: (object) => {
    const claim = claimOf(object);
    return claim === undefined ? [] : [claim];
  },
  namespace: ({ metadata }) => [metadata.namespace],
  reference: (object) => [...new Set(REFERENCES[object.kind](object))],
};

/** Returns the names of the rate-limit namespaces that a policy uses. */
export function limitedIn({ spec }: ManifestObject): string[] {
  const { rules } = (spec ?? {}) as { rules?: unknown };
  const limits = listOf(rules).flatMap((rule) => listOf((rule as { ratelimits?: unknown } | null)?.ratelimits));
  const names = limits.map((limit) => (limit as { namespace?: unknown } | null)?.namespace);
  return names.filter((name) => typeof name === "string");
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
