import type { KeyRecord } from "../core/records.ts";

/* Kinds of records that travel between the control plane and the gates, and the names of records. */

/**
 * Kinds of records. `override` is one exact identifier of a namespace; `overridePatterns` are all of its identifiers with a `*`.
 * `namespaceName` maps a name to the namespace. `rootKey` is a root key: only api-servers read it, so it is on the global change stream but
 * never written to a store that gates can read.
 */
export const RECORD_KINDS = [
  "key",
  "identity",
  "role",
  "api",
  "workspace",
  "namespace",
  "override",
  "overridePatterns",
  "policy",
  "namespaceName",
  "rootKey",
] as const;

export type RecordKind = (typeof RECORD_KINDS)[number];

export const POSTGRES_ONLY_KINDS: ReadonlySet<RecordKind> = new Set(["rootKey"]);

/**
 * Kinds to which keys refer. Their tombstones are kept as long as a key may refer to them: a key keeps its reference to an API even long
 * after the API was deleted. Without the tombstone, the record would be `missing`, which readers treat as unknown, so the key could never
 * be decided.
 */
export const REFERRED_KINDS: ReadonlySet<RecordKind> = new Set(["identity", "role", "api", "workspace"]);

/**
 * Reference to one record. The value of `id` depends on the kind: the hash (base64 SHA-256) for keys and root keys, the result of
 * `overrideRecordId` for `override`, the namespace id for `overridePatterns`, the name for `namespaceName`, and the object's own id for all
 * other kinds.
 */
export interface RecordRef {
  readonly workspaceId: string;
  readonly kind: RecordKind;
  readonly id: string;
}

/** `<namespace id>/<identifier>`. A namespace id contains no slash, so the first slash ends it. */
export const overrideRecordId = (namespaceId: string, identifier: string): string => `${namespaceId}/${identifier}`;

/** Returns the records of `REFERRED_KINDS` to which a key refers. The view of the key is made from them. */
export const refsOfKey = ({ workspaceId, apiId, identityId, roleIds }: KeyRecord): RecordRef[] => [
  { workspaceId, kind: "workspace", id: workspaceId },
  { workspaceId, kind: "api", id: apiId },
  ...(identityId === undefined ? [] : [{ workspaceId, kind: "identity", id: identityId } as const]),
  ...roleIds.map((id) => ({ workspaceId, kind: "role", id }) as const),
];
