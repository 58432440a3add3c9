import type { Logger } from "pino";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import { startListWatch } from "../runtime/list-watch.ts";

export interface NamespaceLabels {
  /** Resolves when all Namespaces were listed. */
  readonly listed: Promise<void>;
  /** The labels of a Namespace; undefined when it was not seen. */
  labelsOf(namespace: string): Readonly<Record<string, string>> | undefined;
  /** Reads one Namespace now: a watch may be late, and an object of a namespace can be seen before a change of its labels. */
  refresh(namespace: string): Promise<void>;
  close(): Promise<void>;
}

/** Follows the labels of all Namespaces of a cluster. `onChange` is called with the name of a Namespace that came, or whose labels changed. */
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
        // Gone: so are its objects, soon.
        if (!isKubeError(error, 404)) throw error;
      }
    },
    close: watch.close,
  };
}

const text = (object: KubeObject | undefined): string | undefined =>
  object === undefined ? undefined : JSON.stringify(object.metadata.labels ?? {});

/** One watch of the Namespaces for all that ask for it, opened when the first does. */
export function shareNamespaces(
  open: (onChange: (namespace: string) => void) => NamespaceLabels,
): (onChange: (namespace: string) => void) => NamespaceLabels {
  const told: Array<(namespace: string) => void> = [];
  let opened: NamespaceLabels | undefined;
  return (onChange) => {
    told.push(onChange);
    opened ??= open((namespace) => {
      for (const tell of told) tell(namespace);
    });
    return opened;
  };
}
