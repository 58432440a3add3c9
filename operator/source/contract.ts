import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";

/** The object has something in the store, in the only workspace of its operator. */
export const FINALIZER = "postern.dev/store";
/** The object has something in the store, in the workspace whose name follows. */
export const WORKSPACE_FINALIZER = "store.postern.dev/";

/** Returns our finalizers: usually none or one. */
export const storeFinalizersOf = ({ metadata: { finalizers } }: ManifestObject): readonly string[] =>
  finalizers.filter((finalizer) => finalizer === FINALIZER || finalizer.startsWith(WORKSPACE_FINALIZER));

/** On an object that is being deleted: remove the finalizer although the store is unreachable. */
export const ABANDON_ANNOTATION = "postern.dev/abandon";

/** An object as Kubernetes returns it; the directory source makes the same form from files. */
export interface ManifestObject {
  readonly kind: Kind;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    /** Increases with each change of the spec, within one uid. */
    readonly generation: number;
    readonly creationTimestamp: string;
    /** Set from the moment of its deletion until its last finalizer is removed. */
    readonly deletionTimestamp?: string;
    readonly finalizers: readonly string[];
    readonly annotations: Readonly<Record<string, string>>;
    /** Kubernetes only: the version that a write expects. */
    readonly resourceVersion?: string;
  };
  /** As written; the reconcilers parse it. */
  readonly spec: unknown;
  readonly status: unknown;
}

/** `before` is missing for a new object, `after` for a deleted one. */
export interface ManifestChange {
  readonly kind: Kind;
  readonly before?: ManifestObject;
  readonly after?: ManifestObject;
}

/** Of a changed object both, what it was first. */
export const versionsOf = ({ before, after }: ManifestChange): readonly ManifestObject[] =>
  [before, after].filter((version) => version !== undefined);

export interface ManifestEvent {
  readonly type: "Normal" | "Warning";
  /** CamelCase, as in a condition. */
  readonly reason: string;
  /** What the operator did or tried. */
  readonly action: string;
  readonly note: string;
}

/** Where manifests come from, and where their status is written. */
export interface ManifestSource {
  /** Resolves when every kind was listed once. Reports each change of the cache, including the first list. */
  start(onChange: (change: ManifestChange) => void): Promise<void>;
  get(kind: Kind, key: ObjectKey): ManifestObject | undefined;
  list(kind: Kind): readonly ManifestObject[];
  /** Replaces the status. Does nothing if the object is gone, or another object has its name by now. */
  updateStatus(object: ManifestObject, status: object): Promise<void>;
  /** Throws when the object changed since it was read; the next reconcile reads the newer one. */
  setFinalizers(object: ManifestObject, finalizers: readonly string[]): Promise<void>;
  /** Never throws: an Event is optional information. */
  recordEvent(object: ManifestObject, event: ManifestEvent): Promise<void>;
  /** Where objects put what only their apps may read. */
  readonly secrets: SecretStore;
  close(): Promise<void>;
}

/** A Secret, as far as it is looked at: never its content. */
export type FoundSecret =
  | { readonly state: "absent" }
  /** `version` is what a write expects; `keyId` is the key that was written last. */
  | { readonly state: "ours"; readonly keyId: string | undefined; readonly version: string }
  /** It does not belong to the object that asks. */
  | { readonly state: "foreign" }
  | { readonly state: "refused"; readonly message: string };

export interface SecretContent {
  readonly name: string;
  /** The key of the Secret's data. */
  readonly member: string;
  readonly keyId: string;
  readonly text: string;
}

/** Secrets in the namespace of the object that owns them. */
export interface SecretStore {
  find(owner: ManifestObject, name: string): Promise<FoundSecret>;
  /**
   * Creates the Secret, or replaces the member of one that is the owner's. `found` says what was there: throws when that is not so any
   * more. Returns why it must not be written; undefined when it was.
   */
  write(owner: ManifestObject, content: SecretContent, found: FoundSecret): Promise<string | undefined>;
  /** Returns why a write would be refused, without writing; undefined when it would not. */
  check(owner: ManifestObject, content: Omit<SecretContent, "text">, found: FoundSecret): Promise<string | undefined>;
  /** Whether Secrets are deleted after their owner by others. */
  readonly areCollected: boolean;
  /** Removes the owner's Secret. */
  remove(owner: ManifestObject, name: string): Promise<void>;
}

export const keyOf = ({ metadata: { namespace, name } }: ManifestObject): ObjectKey => ({ namespace, name });
