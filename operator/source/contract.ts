import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";

/** The one finalizer of ours: the object has something in the store. */
export const FINALIZER = "postern.dev/store";
/** On an object that is being deleted: let it go although the store cannot be asked. */
export const ABANDON_ANNOTATION = "postern.dev/abandon";

/** An object as Kubernetes has it; the directory source gives files the same form. */
export interface ManifestObject {
  readonly kind: Kind;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    /** Grows with each change of the spec, within one uid. */
    readonly generation: number;
    readonly creationTimestamp: string;
    /** Set from the moment of its deletion until its last finalizer is gone. */
    readonly deletionTimestamp?: string;
    readonly finalizers: readonly string[];
    readonly annotations: Readonly<Record<string, string>>;
    /** Kubernetes alone: what a write must still find. */
    readonly resourceVersion?: string;
  };
  /** As written; the reconcilers parse it. */
  readonly spec: unknown;
  readonly status: unknown;
}

/** `before` is missing for a new object, `after` for one that is gone. */
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

/** Where desired resources come from, and where what became of them is written back to. */
export interface ManifestSource {
  /** Resolves when every kind was listed once. Each change of the cache is reported, the first list included. */
  start(onChange: (change: ManifestChange) => void): Promise<void>;
  get(kind: Kind, key: ObjectKey): ManifestObject | undefined;
  list(kind: Kind): readonly ManifestObject[];
  /** Replaces the status. An object that is gone, or is another one by now, is no error: there is nothing to tell any more. */
  updateStatus(object: ManifestObject, status: object): Promise<void>;
  /** Throws when the object changed since it was read; the next reconcile sees the newer one. */
  setFinalizers(object: ManifestObject, finalizers: readonly string[]): Promise<void>;
  /** Never throws: an Event is a courtesy. */
  recordEvent(object: ManifestObject, event: ManifestEvent): Promise<void>;
  close(): Promise<void>;
}

export const keyOf = ({ metadata: { namespace, name } }: ManifestObject): ObjectKey => ({ namespace, name });
