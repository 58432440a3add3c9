import type { Logger } from "pino";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import { startListWatch } from "../runtime/list-watch.ts";

export interface NamespaceLabels {
  /** Resolves when all Namespaces have been listed. */
  readonly listed: Promise<void>;
  /** Returns the labels of a Namespace; `undefined` if it is not cached. */
  labelsOf(namespace: string): Readonly<Record<string, string>> | undefined;
  /**
   * Reads one Namespace immediately, because an object in the Namespace may arrive before the watch reports a change of the Namespace's
   * labels.
   */
  refresh(namespace: string): Promise<void>;
  close(): Promise<void>;
}

/** Watches the labels of all Namespaces. Calls `onChange` with the name of each Namespace that was added or whose labels changed. */
export function followNamespaces({
  client,
  onChange,
  log,
}: {
  readonly client: KubeClient;
  readonly onChange: (namespace: string) => void;
  readonly log: Logger;
}): NamespaceLabels {
  const path = "/api/v1/namespaces";
  const watch = startListWatch({
    client,
    path,
    log,
    onChange: ({ before, after }) => {
      if (after !== undefined && text(before) !== text(after)) onChange(after.metadata.name);
    },
  });
  return {
    listed: watch.listed,
    labelsOf: (namespace) => {
      const found = watch.get("", namespace);
      return found === undefined ? undefined : (found.metadata.labels ?? {});
    },
    refresh: async (namespace) => {
      try {
        watch.put(await client.send<KubeObject>({ method: "GET", path: `${path}/${namespace}` }));
      } catch (error) {
        // The Namespace has been deleted, and Kubernetes deletes its objects too.
        if (!isKubeError(error, 404)) throw error;
      }
    },
    close: watch.close,
  };
}

const text = (object: KubeObject | undefined): string | undefined =>
  object === undefined ? undefined : JSON.stringify(object.metadata.labels ?? {});

/** Returns a function whose first call opens a watch of the Namespaces, which all calls share. */
export function shareNamespaces(
  open: (onChange: (namespace: string) => void) => NamespaceLabels,
): (onChange: (namespace: string) => void) => NamespaceLabels {
  const listeners: Array<(namespace: string) => void> = [];
  let opened: NamespaceLabels | undefined;
  return (onChange) => {
    listeners.push(onChange);
    opened ??= open((namespace) => {
      for (const tell of listeners) tell(namespace);
    });
    return opened;
  };
}
