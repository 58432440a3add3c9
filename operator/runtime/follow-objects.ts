import type { Logger } from "pino";
import type { KubeClient, KubeObject } from "./kube-client.ts";
import { startListWatch } from "./list-watch.ts";

export interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** A kind of objects to watch, and the fields to cache. */
export interface FollowedKind<Seen> {
  /** Path of the API group and version: `/api/v1` or `/apis/<group>/<version>`. */
  readonly groupPath: string;
  readonly plural: string;
  readonly trim: (object: KubeObject) => KubeObject;
  /** Returns the cached fields of a trimmed object. */
  readonly toSeen: (object: KubeObject) => Seen;
}

export interface FollowOptions<Seen> extends FollowedKind<Seen> {
  readonly client: KubeClient;
  /** Namespaces to watch. Default: all. */
  readonly namespaces: readonly string[] | undefined;
  /**
   * Called with the old and new version of each object that was added, removed, or changed in its cached fields. Also called once, with an
   * empty array, after the first complete list.
   */
  readonly onChange: (versions: readonly Seen[]) => void;
  readonly log: Logger;
}

export interface FollowedObjects<Seen> {
  /** Returns the objects of a namespace; `undefined` before the first complete list. */
  in(namespace: string): readonly Seen[] | undefined;
  /** Caches an object that this process has written, before the watch reports it. */
  put(object: KubeObject): void;
  /** Removes an object that this process has deleted, before the watch reports its deletion. */
  forget(seen: Seen): void;
  close(): Promise<void>;
}

/** Watches the objects of a kind, and caches selected fields by namespace. Requires permission to list and watch the kind. */
export function followObjects<Seen extends Named>(options: FollowOptions<Seen>): FollowedObjects<Seen> {
  const { client, groupPath, plural, namespaces, trim, toSeen, log } = options;
  const byNamespace = new Map<string, Map<string, Seen>>();
  const seenIn = (namespace: string) => [...(byNamespace.get(namespace)?.values() ?? [])];

  const forget = ({ namespace, name }: Named) => {
    const seen = byNamespace.get(namespace);
    seen?.delete(name);
    if (seen?.size === 0) byNamespace.delete(namespace);
  };
  const keep = ({ before, after }: { readonly before?: KubeObject; readonly after?: KubeObject }) => {
    const [was, is] = [before && toSeen(before), after && toSeen(after)];
    if (is !== undefined) {
      const seen = byNamespace.get(is.namespace) ?? new Map<string, Seen>();
      byNamespace.set(is.namespace, seen.set(is.name, is));
    } else if (was !== undefined) forget(was);
    // Ignores a change that affects no cached field, as most changes do.
    if (JSON.stringify(was) === JSON.stringify(is)) return;
    options.onChange([was, is].filter((version) => version !== undefined));
  };

  const watches = (namespaces ?? [undefined]).map((namespace) => ({
    namespace,
    ...startListWatch({
      client,
      path: namespace === undefined ? `${groupPath}/${plural}` : `${groupPath}/namespaces/${namespace}/${plural}`,
      trim,
      onChange: keep,
      log,
    }),
  }));
  let isListed = false;
  void Promise.all(watches.map(({ listed }) => listed)).then(() => {
    isListed = true;
    options.onChange([]);
  });

  return {
    in: (namespace) => (isListed ? seenIn(namespace) : undefined),
    put: (object) =>
      watches
        .find(({ namespace }) => namespace === undefined || namespace === object.metadata.namespace)
        ?.put(trim(object)),
    forget,
    close: async () => {
      await Promise.all(watches.map((watch) => watch.close()));
    },
  };
}
