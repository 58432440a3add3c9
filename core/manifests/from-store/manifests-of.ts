import type * as z from "zod";
import type { ApiKeySpec } from "../api-key.ts";
import type { ApiKeyPolicySpec } from "../api-key-policy.ts";
import type { Kind } from "../index.ts";
import type { RatelimitNamespaceSpec } from "../ratelimit-namespace.ts";
import type { RatelimitOverrideSpec } from "../ratelimit-override.ts";
import type { RoleSpec } from "../role.ts";
import { formatDuration } from "./format-duration.ts";
import { objectNameOf } from "./object-name.ts";
import { policyFieldsOf } from "./policy-spec.ts";
import type {
  StoredApi,
  StoredKey,
  StoredNamespace,
  StoredObject,
  StoredOverride,
  StoredRole,
} from "./stored-object.ts";

/*
 * Manifest of an existing object. Once it is applied, the database and the manifest are in sync. `spec.adopt: Match` adopts an object
 * without a manager, and fails if the object has changed in the meantime.
 */

export interface WrittenManifest {
  readonly kind: Kind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: Readonly<Record<string, unknown>>;
  /** Notes for the user to read before applying the manifest; each note becomes a comment line. */
  readonly notes: readonly string[];
}

/** Placeholder for `target.port`. A valid manifest requires a port, but the database does not store it. */
const PORT = 8080;

/** Returns manifests in the order to apply them in: referenced objects come first. */
export function manifestsOf(object: StoredObject): readonly WrittenManifest[] {
  switch (object.kind) {
    case "Role":
      return [role(object)];
    case "RatelimitNamespace":
      return [namespace(object)];
    case "RatelimitOverride":
      // If the namespace already has a manifest, writes only the override.
      return object.namespace.manager === undefined
        ? [namespace(object.namespace), override(object)]
        : [override(object)];
    case "ApiKeyPolicy":
      return [policy(object)];
    case "ApiKey":
      return [key(object)];
  }
}

/** Returns the metadata of the manifest that manages the object; otherwise new metadata derived from its stored name. */
function metadataOf({ kind, manager }: StoredObject, storedName: string) {
  return manager === undefined
    ? { name: objectNameOf(storedName, kind) }
    : { name: manager.name, namespace: manager.namespace };
}

function madeNotes({ kind, manager }: StoredObject, storedName: string): string[] {
  if (manager !== undefined)
    return ["A manifest already manages this object: change the original. This is the stored state."];
  return objectNameOf(storedName, kind) === storedName
    ? []
    : [
        `metadata.name is derived from ${JSON.stringify(storedName)}, because Kubernetes allows only lowercase letters, digits and -. You can choose another one.`,
      ];
}

const adoptUnlessManaged = ({ manager }: StoredObject) => (manager === undefined ? ({ adopt: "Match" } as const) : {});

function role(object: StoredRole): WrittenManifest {
  const { name, description, permissions } = object;
  const spec: z.input<typeof RoleSpec> = {
    name,
    ...(description === undefined ? {} : { description }),
    permissions: [...permissions],
    ...adoptUnlessManaged(object),
  };
  return { kind: "Role", metadata: metadataOf(object, name), spec, notes: madeNotes(object, name) };
}

function namespace(object: StoredNamespace): WrittenManifest {
  const { name } = object;
  const spec: z.input<typeof RatelimitNamespaceSpec> = { name, ...adoptUnlessManaged(object) };
  return { kind: "RatelimitNamespace", metadata: metadataOf(object, name), spec, notes: madeNotes(object, name) };
}

function override(object: StoredOverride): WrittenManifest {
  const { identifier, limit, durationMs, async } = object;
  const target = metadataOf(object.namespace, object.namespace.name);
  const storedName = `${object.namespace.name}-${identifier}`;
  const spec: z.input<typeof RatelimitOverrideSpec> = {
    namespaceRef: target,
    identifier,
    limit,
    duration: formatDuration(durationMs),
    ...(async ? { async } : {}),
    ...adoptUnlessManaged(object),
  };
  const notes = [
    ...madeNotes(object, storedName),
    ...(target.namespace === undefined || target.namespace === object.manager?.namespace
      ? []
      : [
          `To apply this manifest in another Kubernetes namespace than ${target.namespace}, add the other one to spec.allowedNamespaces of the RatelimitNamespace ${target.name}.`,
        ]),
  ];
  return { kind: "RatelimitOverride", metadata: metadataOf(object, storedName), spec, notes };
}

function policy(object: StoredApi): WrittenManifest {
  const { apiId, apiName, manager } = object;
  const spec: z.input<typeof ApiKeyPolicySpec> = {
    api: manager === undefined ? { id: apiId } : { name: apiName },
    target: { port: PORT },
    ...(object.policy === undefined ? {} : policyFieldsOf(object.policy, object.namespaceNames)),
    ...adoptUnlessManaged(object),
  };
  const notes = [
    ...madeNotes(object, apiName),
    `spec.target.port and spec.selector are not stored: set the container port of your app and the labels of its pods. Without spec.selector, no pods get a gate.`,
    ...(object.policy === undefined ? ["Without rules, every request requires a valid key of the API."] : []),
  ];
  return { kind: "ApiKeyPolicy", metadata: metadataOf(object, apiName), spec, notes };
}

function key(object: StoredKey): WrittenManifest {
  const { apiId, name, externalId, roles, permissions, ratelimits, credits, expires, manager } = object;
  const storedName = name ?? `key of ${externalId ?? apiId}`;
  const metadata = metadataOf(object, storedName);
  const spec: z.input<typeof ApiKeySpec> = {
    apiRef: { id: apiId },
    ...(name === undefined ? {} : { name }),
    ...(externalId === undefined ? {} : { owner: externalId }),
    ...(roles.length === 0 ? {} : { roles: [...roles] }),
    ...(permissions.length === 0 ? {} : { permissions: [...permissions] }),
    ...(ratelimits.length === 0
      ? {}
      : {
          ratelimits: ratelimits.map(({ name: limitName, limit, duration, autoApply }) => ({
            name: limitName,
            limit,
            duration: formatDuration(duration),
            ...(autoApply ? { autoApply } : {}),
          })),
        }),
    ...(credits === undefined ? {} : { credits: creditsOf(credits) }),
    ...(expires === undefined ? {} : { expires: new Date(expires).toISOString() }),
    secretRef: { name: metadata.name },
  };
  const notes = [
    ...(manager === undefined
      ? [
          ...madeNotes(object, storedName),
          "This manifest issues a new key with the same permissions into a Secret of this name. The existing key is unchanged, and its secret cannot be read again. Delete it when apps use the new key.",
        ]
      : [
          "A manifest already manages this key: change the original. This is the stored state; only the original has spec.secretRef and spec.rotation.",
        ]),
  ];
  return { kind: "ApiKey", metadata, spec, notes };
}

function creditsOf({ remaining, refill }: NonNullable<StoredKey["credits"]>) {
  if (refill === undefined) return { remaining };
  const { interval, amount, refillDay } = refill;
  return {
    remaining,
    refill:
      interval === "daily"
        ? { interval: "Daily" as const, amount }
        : { interval: "Monthly" as const, amount, refillDay: refillDay ?? 1 },
  };
}
