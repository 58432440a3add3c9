import type { KeyRecord } from "../core/records.ts";

/* The kinds of records that travel between the centre and the pods, and how one is named. */

/**
 * `override` is one exact identifier of a namespace, `overridePatterns` are all of its identifiers with a `*`.
 * `namespaceName` leads from a name to the namespace. `rootKey` is a root key: the central server alone reads it, so it
 * travels on its feed but is never written to a store that pods can read.
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

export const CENTRAL_ONLY_KINDS: ReadonlySet<RecordKind> = new Set(["rootKey"]);

/**
 * What keys refer to. Their tombstones stay for as long as something may name them: a key goes on naming an API that was deleted
 * long ago, and a reader takes 'missing' for 'not known', which would make that key unusable for good.
 */
export const REFERRED_KINDS: ReadonlySet<RecordKind> = new Set(["identity", "role", "api", "workspace"]);

/**
 * Names one record. `id` is: for keys and root keys the hash (base64 SHA-256); for `override` what `overrideRecordId`
 * makes of the namespace id and the identifier; for `overridePatterns` the namespace id; for `namespaceName` the name;
 * for `workspace` the workspace id; else the entity's id.
 */
export interface RecordRef {
  readonly workspaceId: string;
  readonly kind: RecordKind;
  readonly id: string;
}

/** `<namespace id>/<identifier>`: a namespace id contains no slash, so the first one parts the two. */
export const overrideRecordId = (namespaceId: string, identifier: string): string => `${namespaceId}/${identifier}`;

/** What the record of a key refers to: the records of `REFERRED_KINDS` that its view is made of. */
export const refsOfKey = ({ workspaceId, apiId, identityId, roleIds }: KeyRecord): RecordRef[] => [
  { workspaceId, kind: "workspace", id: workspaceId },
  { workspaceId, kind: "api", id: apiId },
  ...(identityId === undefined ? [] : [{ workspaceId, kind: "identity", id: identityId } as const]),
  ...roleIds.map((id) => ({ workspaceId, kind: "role", id }) as const),
];
