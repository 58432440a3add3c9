import type { Kind } from "../../core/manifests/index.ts";
import { formatKey, type ObjectKey } from "../runtime/object-key.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { IndexedSource, Indexes, Lookup } from "../source/indexed.ts";
import { claimOf } from "./claims.ts";
import { apiIn, apiRefIdIn, namespaceRefOf, policyRefOf, rolesIn } from "./raw-spec.ts";

/* By what the reconcilers find objects. Nothing that is done for one object reads a list of all of them. */

export type IndexName = "claim" | "namespace" | "reference";
export type ObjectLookup = Lookup<IndexName>;
export type ObjectSource = IndexedSource<IndexName>;

/** A reference to an object by its own name. */
export const toObject = (kind: Kind, key: ObjectKey): string => `object ${kind} ${formatKey(key)}`;
/** A reference to what an object is called in the store. */
export const toNamed = (kind: Kind, name: string): string => `named ${kind} ${name}`;
/** A reference to an API by its id: only the store knows which policy made that one, so all of them have one value. */
export const TO_API_BY_ID = "api by id";

/** What an object refers to, also by a spec that does not parse, because too many reconciles do no harm. */
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

/** Names of the rate-limit namespaces in which a policy counts. */
function limitedIn({ spec }: ManifestObject): string[] {
  const { rules } = (spec ?? {}) as { rules?: unknown };
  const limits = listOf(rules).flatMap((rule) => listOf((rule as { ratelimits?: unknown } | null)?.ratelimits));
  const names = limits.map((limit) => (limit as { namespace?: unknown } | null)?.namespace);
  return names.filter((name) => typeof name === "string");
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
