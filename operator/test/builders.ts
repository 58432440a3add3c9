import type { Kind } from "../../core/manifests/index.ts";
import { FINALIZER, type ManifestObject } from "../source/contract.ts";

/** Builds a manifest object with defaults: the name `shop/it`, generation 1, and a fixed creation time. */
export function anObject(
  kind: Kind,
  spec: unknown,
  { status, ...metadata }: Partial<ManifestObject["metadata"]> & { status?: unknown } = {},
): ManifestObject {
  const name = metadata.name ?? "it";
  return {
    kind,
    metadata: {
      name,
      namespace: "shop",
      uid: `uid-of-${name}`,
      generation: 1,
      creationTimestamp: "2026-01-01T00:00:00Z",
      finalizers: [FINALIZER],
      annotations: {},
      ...metadata,
    },
    spec,
    status,
  };
}

/** Builds a manifest object with a deletion timestamp. */
export const aDeletedObject = (kind: Kind, spec: unknown): ManifestObject =>
  anObject(kind, spec, { deletionTimestamp: "2026-01-02T00:00:00Z" });

export const managerOfIt = (kind: Kind): string => `test/${kind}/shop/it`;
