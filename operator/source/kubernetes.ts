import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Logger } from "pino";
import { API_VERSION, GROUP, KINDS, type Kind, VERSION } from "../../core/manifests/index.ts";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import { microTime } from "../runtime/leader.ts";
import { type ListWatch, startListWatch } from "../runtime/list-watch.ts";
import {
  ABANDON_ANNOTATION,
  type ManifestChange,
  type ManifestEvent,
  type ManifestObject,
  type ManifestSource,
} from "./contract.ts";
import { createKubernetesSecrets } from "./kubernetes-secrets.ts";
import { createUndeclaredFields } from "./undeclared-fields.ts";

/** Field manager of the operator's server-side applies. */
export const FIELD_MANAGER = "postern-operator";
/** Maximum size of the note of an Event, in bytes (events.k8s.io/v1). */
const NOTE_LENGTH_MAX = 1024;

export interface KubernetesSourceOptions {
  readonly client: KubeClient;
  /** Namespaces to watch. Default: all. */
  readonly namespaces?: readonly string[] | undefined;
  /** Controller class of the objects to read. Default: objects without a class. */
  readonly controllerClass?: string | undefined;
  readonly log: Logger;
}

/** Creates a source whose manifests are custom resources of a cluster. */
export function createKubernetesSource(options: KubernetesSourceOptions): ManifestSource {
  const { client, namespaces, controllerClass, log } = options;
  const watches = new Map<Kind, ListWatch[]>();
  let hasLoggedEventFailure = false;
  const undeclared = createUndeclaredFields();

  const open = (kind: Kind, plural: string, onChange: (change: ManifestChange) => void): ListWatch[] =>
    (namespaces ?? [undefined]).map((namespace) =>
      startListWatch({
        client,
        path: namespace === undefined ? `/apis/${GROUP}/${VERSION}/${plural}` : pathOf(plural, namespace),
        labelSelector: selectorOfClass(controllerClass),
        trim: trimObject,
        log,
        onChange: ({ before, after }) =>
          onChange({
            kind,
            ...(before === undefined ? {} : { before: toManifest(kind, before) }),
            ...(after === undefined ? {} : { after: toManifest(kind, after) }),
          }),
      }),
    );

  /** Caches an object that this process has written, so that the next reconcile does not use an older version. */
  const remember = (kind: Kind, object: KubeObject) => {
    const isDeleted =
      object.metadata.deletionTimestamp !== undefined && (object.metadata.finalizers ?? []).length === 0;
    // Skips an object that now has the class of another operator, because the watch has already reported its removal.
    if (isDeleted || !isOfClass(object.metadata.labels, controllerClass)) return;
    const at = namespaces?.indexOf(object.metadata.namespace ?? "") ?? 0;
    watches.get(kind)?.[at]?.put(trimObject(object));
  };

  /** Writes the complete status by server-side apply. Omitted fields are removed, and fields of other managers remain. */
  const applyStatus = ({ kind, metadata: { name, namespace, uid } }: ManifestObject, status: object) =>
    client.send<KubeObject>({
      method: "PATCH",
      path: `${pathOf(pluralOf(kind), namespace)}/${name}/status`,
      query: { fieldManager: FIELD_MANAGER, force: "true" },
      contentType: "application/apply-patch+yaml",
      body: { apiVersion: API_VERSION, kind, metadata: { name, namespace, uid }, status },
    });

  return {
    start: async (onChange) => {
      for (const { kind, plural } of KINDS) watches.set(kind, open(kind, plural, onChange));
      await Promise.all([...watches.values()].flat().map(({ listed }) => listed));
    },

    get: (kind, { namespace, name }) => {
      for (const watch of watches.get(kind) ?? []) {
        const found = watch.get(namespace, name);
        if (found !== undefined) return toManifest(kind, found);
      }
      return undefined;
    },

    list: (kind) =>
      (watches.get(kind) ?? []).flatMap((watch) => watch.list().map((object) => toManifest(kind, object))),

    updateStatus: async (object, status) => {
      const { kind } = object;
      for (;;) {
        try {
          return remember(kind, await applyStatus(object, undeclared.without(kind, status)));
        } catch (error) {
          // The object was deleted in the meantime (404), or its name belongs to another object with another uid (409).
          if (isKubeError(error, 404) || isKubeError(error, 409)) return;
          // The loop terminates, because each attempt omits at least one field more than the previous one.
          if (!undeclared.note(kind, error)) throw error;
          log.warn(
            { kind, err: error },
            "the CRD does not declare a field of the status, which is omitted: upgrade the CRDs",
          );
        }
      }
    },

    setFinalizers: async ({ kind, metadata }, finalizers) => {
      const { name, namespace, uid, resourceVersion } = metadata;
      const written = await client.send<KubeObject>({
        method: "PATCH",
        path: `${pathOf(pluralOf(kind), namespace)}/${name}`,
        query: { fieldManager: FIELD_MANAGER },
        contentType: "application/merge-patch+json",
        // A merge patch replaces the complete list. The resource version keeps it from overwriting a change by another writer.
        body: { metadata: { uid, resourceVersion, finalizers } },
      });
      remember(kind, written);
    },

    recordEvent: async ({ kind, metadata }, event) => {
      const body = toEvent(kind, metadata, event);
      try {
        await client.send({
          method: "POST",
          path: `/apis/events.k8s.io/v1/namespaces/${metadata.namespace}/events`,
          body,
        });
        hasLoggedEventFailure = false;
      } catch (error) {
        // Logs a missing permission only once, because it affects every Event. The request metric counts all failures.
        const isFirst = isKubeError(error, 403) && !hasLoggedEventFailure;
        if (isFirst) hasLoggedEventFailure = true;
        log[isFirst ? "warn" : "debug"](
          { kind, namespace: metadata.namespace, object: metadata.name, err: error },
          "an Event was not recorded",
        );
      }
    },

    secrets: createKubernetesSecrets(client),

    close: async () => {
      await Promise.all([...watches.values()].flat().map((watch) => watch.close()));
    },
  };
}

const pathOf = (plural: string, namespace: string) => `/apis/${GROUP}/${VERSION}/namespaces/${namespace}/${plural}`;

function pluralOf(kind: Kind): string {
  const definition = KINDS.find((one) => one.kind === kind);
  if (definition === undefined) throw new Error(`${kind} is not a kind of Postern`);
  return definition.plural;
}

/**
 * Returns an object with only the fields that `toManifest` reads, because the operator caches the objects of all namespaces, and anyone who
 * may write in a single namespace can make their metadata large (annotations up to 256 KiB, labels without limit).
 */
export function trimObject({ metadata, spec, status }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const abandon = metadata.annotations?.[ABANDON_ANNOTATION];
  return {
    metadata: {
      ...{ name, uid, resourceVersion, creationTimestamp },
      ...(namespace === undefined ? {} : { namespace }),
      ...(generation === undefined ? {} : { generation }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(metadata.finalizers === undefined ? {} : { finalizers: metadata.finalizers }),
      ...(abandon === undefined ? {} : { annotations: { [ABANDON_ANNOTATION]: abandon } }),
    },
    spec,
    status,
  };
}

/** Cache of manifests by the version of their object, because the reconcilers often read all objects of a kind. */
const manifests = new WeakMap<KubeObject, ManifestObject>();

function toManifest(kind: Kind, object: KubeObject): ManifestObject {
  const known = manifests.get(object);
  if (known !== undefined) return known;
  const made = makeManifest(kind, object);
  manifests.set(object, made);
  return made;
}

function makeManifest(kind: Kind, { metadata, spec, status }: KubeObject): ManifestObject {
  const { name, namespace = "", uid, generation = 1, creationTimestamp, deletionTimestamp, resourceVersion } = metadata;
  return {
    kind,
    metadata: {
      name,
      namespace,
      uid,
      generation,
      creationTimestamp,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      finalizers: metadata.finalizers ?? [],
      annotations: metadata.annotations ?? {},
      resourceVersion,
    },
    spec,
    status,
  };
}

function toEvent(kind: Kind, metadata: ManifestObject["metadata"], { type, reason, action, note }: ManifestEvent) {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: `${name.slice(0, 200)}.${randomBytes(8).toString("hex")}`, namespace },
    eventTime: microTime(),
    type,
    reason,
    action,
    note: note.slice(0, NOTE_LENGTH_MAX),
    regarding: { apiVersion: API_VERSION, kind, name, namespace, uid, resourceVersion },
    reportingController: "postern.dev/operator",
    reportingInstance: hostname(),
  };
}

/** Label of manifests and guarded pods: controller class of the responsible operator. */
export const CONTROLLER_CLASS_LABEL = "postern.dev/controller-class";

/**
 * Returns whether an object belongs to the operator of this class; `undefined` is the operator without a class. An object with an empty
 * label belongs to no operator.
 */
export const isOfClass = (
  labels: Readonly<Record<string, string>> | undefined,
  controllerClass: string | undefined,
): boolean => labels?.[CONTROLLER_CLASS_LABEL] === controllerClass;

/** Returns the label selector for lists and watches of a class, so that an operator never reads objects of other operators. */
export const selectorOfClass = (controllerClass: string | undefined): string =>
  controllerClass === undefined ? `!${CONTROLLER_CLASS_LABEL}` : `${CONTROLLER_CLASS_LABEL}=${controllerClass}`;
