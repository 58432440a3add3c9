import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";

/** Finalizer of an object that owns a resource in the database, in the operator's only workspace. */
export const FINALIZER = "postern.dev/store";
/** Prefix of a finalizer, followed by a workspace name: the object owns a resource in this workspace of the database. */
export const WORKSPACE_FINALIZER = "store.postern.dev/";

/** Returns the object's finalizers that belong to Postern, usually at most one. */
export const storeFinalizersOf = ({ metadata: { finalizers } }: ManifestObject): readonly string[] =>
  finalizers.filter((finalizer) => finalizer === FINALIZER || finalizer.startsWith(WORKSPACE_FINALIZER));

/** Annotation of an object that is being deleted. It makes the operator remove its finalizer even if the api-server is unreachable. */
export const ABANDON_ANNOTATION = "postern.dev/abandon";

/** An object in the form that Kubernetes returns. The directory source creates the same form from files. */
export interface ManifestObject {
  readonly kind: Kind;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    /** Number that increases with each change of the spec while the object has this uid. */
    readonly generation: number;
    readonly creationTimestamp: string;
    /** Time of the deletion request; set until the last finalizer is removed. */
    readonly deletionTimestamp?: string;
    readonly finalizers: readonly string[];
    readonly annotations: Readonly<Record<string, string>>;
    /** Version that the stored object must have for a write; `undefined` for a directory. */
    readonly resourceVersion?: string;
  };
  /** Unparsed spec, which the reconcilers parse. */
  readonly spec: unknown;
  readonly status: unknown;
}

/** Change of an object. `before` is missing for a new object, `after` for a deleted one. */
export interface ManifestChange {
  readonly kind: Kind;
  readonly before?: ManifestObject;
  readonly after?: ManifestObject;
}

/** Returns the old and the new version of the changed object, in this order, if they exist. */
export const versionsOf = ({ before, after }: ManifestChange): readonly ManifestObject[] =>
  [before, after].filter((version) => version !== undefined);

export interface ManifestEvent {
  readonly type: "Normal" | "Warning";
  /** CamelCase reason of the Event, as in a condition. */
  readonly reason: string;
  /** Action that the operator has taken or attempted. */
  readonly action: string;
  readonly note: string;
}

/** Provides manifests and stores their status. */
export interface ManifestSource {
  /** Starts to report each change of the cache, including those caused by the first list. Resolves when every kind has been listed once. */
  start(onChange: (change: ManifestChange) => void): Promise<void>;
  get(kind: Kind, key: ObjectKey): ManifestObject | undefined;
  list(kind: Kind): readonly ManifestObject[];
  /** Replaces the status. Has no effect if the object was deleted or its name belongs to another object. */
  updateStatus(object: ManifestObject, status: object): Promise<void>;
  /** Replaces the finalizers. Throws if the object has changed since it was read; the next reconcile reads the newer version. */
  setFinalizers(object: ManifestObject, finalizers: readonly string[]): Promise<void>;
  /** Records an Event. Never throws, because the loss of an Event does no harm. */
  recordEvent(object: ManifestObject, event: ManifestEvent): Promise<void>;
  /** Stores secrets that only the apps of an object may read. */
  readonly secrets: SecretStore;
  close(): Promise<void>;
}

/** State of a Secret, without its content. */
export type FoundSecret =
  | { readonly state: "absent" }
  /**
   * The Secret belongs to the owner. A write succeeds only if the Secret still has `version`. `keyId` is the id of the last written key.
   */
  | { readonly state: "ours"; readonly keyId: string | undefined; readonly version: string }
  /** The Secret belongs to another owner. */
  | { readonly state: "foreign" }
  | { readonly state: "refused"; readonly message: string };

export interface SecretContent {
  readonly name: string;
  /** Name of the member in the Secret's data. */
  readonly member: string;
  readonly keyId: string;
  readonly text: string;
}

/** Stores Secrets in the namespace of the object that owns them. */
export interface SecretStore {
  find(owner: ManifestObject, name: string): Promise<FoundSecret>;
  /**
   * Creates the Secret, or replaces the member in a Secret that belongs to the owner. Throws if the Secret no longer matches `found`.
   * Returns the reason if the write was refused; `undefined` if it succeeded.
   */
  write(owner: ManifestObject, content: SecretContent, found: FoundSecret): Promise<string | undefined>;
  /** Checks a write without performing it. Returns the reason if it would be refused; `undefined` if it would succeed. */
  check(owner: ManifestObject, content: Omit<SecretContent, "text">, found: FoundSecret): Promise<string | undefined>;
  /** Whether Kubernetes deletes a Secret when its owner is deleted (garbage collection). */
  readonly areCollected: boolean;
  /** Removes the owner's Secret. */
  remove(owner: ManifestObject, name: string): Promise<void>;
}

export const keyOf = ({ metadata: { namespace, name } }: ManifestObject): ObjectKey => ({ namespace, name });
