import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";

/** The object owns something in the database, in the operator's only workspace. */
export const FINALIZER = "postern.dev/store";
/** Prefix of a finalizer: the object owns something in the database, in the workspace of the name that follows. */
export const WORKSPACE_FINALIZER = "store.postern.dev/";

/** Returns Postern's finalizers, usually at most one. */
export const storeFinalizersOf = ({ metadata: { finalizers } }: ManifestObject): readonly string[] =>
  finalizers.filter((finalizer) => finalizer === FINALIZER || finalizer.startsWith(WORKSPACE_FINALIZER));

/** On an object that is being deleted: remove the finalizer although the api-server is unreachable. */
export const ABANDON_ANNOTATION = "postern.dev/abandon";

/** An object as Kubernetes returns it; the directory source creates the same form from files. */
export interface ManifestObject {
  readonly kind: Kind;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    /** Increases with each change of the spec, within one uid. */
    readonly generation: number;
    readonly creationTimestamp: string;
    /** Set from the deletion request until the last finalizer is removed. */
    readonly deletionTimestamp?: string;
    readonly finalizers: readonly string[];
    readonly annotations: Readonly<Record<string, string>>;
    /** Kubernetes only: expected version of a write. */
    readonly resourceVersion?: string;
  };
  /** Unparsed; the reconcilers parse it. */
  readonly spec: unknown;
  readonly status: unknown;
}

/** `before` is missing for a new object, `after` for a deleted one. */
export interface ManifestChange {
  readonly kind: Kind;
  readonly before?: ManifestObject;
  readonly after?: ManifestObject;
}

/** Returns the old and the new version, in this order. */
export const versionsOf = ({ before, after }: ManifestChange): readonly ManifestObject[] =>
  [before, after].filter((version) => version !== undefined);

export interface ManifestEvent {
  readonly type: "Normal" | "Warning";
  /** CamelCase, as in a condition. */
  readonly reason: string;
  /** Action that the operator performed or attempted. */
  readonly action: string;
  readonly note: string;
}

/** Provides manifests and stores their status. */
export interface ManifestSource {
  /** Resolves when every kind was listed once. Reports each change of the cache, including the first list. */
  start(onChange: (change: ManifestChange) => void): Promise<void>;
  get(kind: Kind, key: ObjectKey): ManifestObject | undefined;
  list(kind: Kind): readonly ManifestObject[];
  /** Replaces the status. Does nothing if the object was deleted or its name belongs to another object. */
  updateStatus(object: ManifestObject, status: object): Promise<void>;
  /** Throws if the object has changed since it was read; the next reconcile reads the newer version. */
  setFinalizers(object: ManifestObject, finalizers: readonly string[]): Promise<void>;
  /** Never throws, because Events are optional. */
  recordEvent(object: ManifestObject, event: ManifestEvent): Promise<void>;
  /** Stores secrets that only an object's apps may read. */
  readonly secrets: SecretStore;
  close(): Promise<void>;
}

/** State of a Secret, without its content. */
export type FoundSecret =
  | { readonly state: "absent" }
  /** `version` is the expected version of a write; `keyId` is the key that was written last. */
  | { readonly state: "ours"; readonly keyId: string | undefined; readonly version: string }
  /** It belongs to another owner. */
  | { readonly state: "foreign" }
  | { readonly state: "refused"; readonly message: string };

export interface SecretContent {
  readonly name: string;
  /** Key in the Secret's data. */
  readonly member: string;
  readonly keyId: string;
  readonly text: string;
}

/** Secrets in the namespace of the object that owns them. */
export interface SecretStore {
  find(owner: ManifestObject, name: string): Promise<FoundSecret>;
  /**
   * Creates the Secret, or replaces the member of a Secret that the owner has. Throws if the Secret no longer matches `found`. Returns why
   * the write was refused; `undefined` if it succeeded.
   */
  write(owner: ManifestObject, content: SecretContent, found: FoundSecret): Promise<string | undefined>;
  /** Returns why a write would be refused, without writing; `undefined` if it would succeed. */
  check(owner: ManifestObject, content: Omit<SecretContent, "text">, found: FoundSecret): Promise<string | undefined>;
  /** Whether Secrets are garbage-collected after their owner. */
  readonly areCollected: boolean;
  /** Removes the owner's Secret. */
  remove(owner: ManifestObject, name: string): Promise<void>;
}

export const keyOf = ({ metadata: { namespace, name } }: ManifestObject): ObjectKey => ({ namespace, name });
