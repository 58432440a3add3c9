/* State of a client's watches, for readiness and metrics. */

/** Resource to which a path of the Kubernetes API refers. */
export interface ResourcePath {
  /** Plural name of the resource, such as `roles`, followed by the subresource if there is one, such as `roles/status`. */
  readonly resource: string;
  /** Namespace of the resource; `undefined` for a cluster-scoped resource and for a collection of all namespaces. */
  readonly namespace: string | undefined;
}

/** Parses a path of the form `/api/v1/…` or `/apis/GROUP/VERSION/…`. */
export function readResourcePath(path: string): ResourcePath {
  const [, kind, ...rest] = path.split("/");
  const [first = "", second, ...more] = rest.slice(kind === "api" ? 1 : 2);
  // `/api/v1/namespaces/shop` is a Namespace, and `/api/v1/namespaces/shop/pods` is a collection in this namespace.
  const isInNamespace = first === "namespaces" && more.length > 0;
  const [plural = "", , subresource] = isInNamespace ? more : [first, second, ...more];
  return {
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    namespace: isInNamespace ? second : undefined,
  };
}

export interface WatchState extends ResourcePath {
  /**
   * Time since the watch was last known to be complete (after a list, an accepted watch, an event or a bookmark); `undefined` before the
   * first list.
   */
  readonly ageMs: number | undefined;
  /** Error of the last attempt; `undefined` if it succeeded. */
  readonly failure: unknown;
}

/** Receives reports about one watch. */
export interface WatchReport {
  /** Reports that the watch is working and has missed no change so far. */
  alive(): void;
  failed(error: unknown): void;
  /** Removes the state of a watch that was closed intentionally. */
  end(): void;
}

export interface Watches {
  /** Adds a watch of the collection with this path. */
  open(path: string): WatchReport;
  states(): readonly WatchState[];
}

export function createWatches(monotonicMs: () => number): Watches {
  const known = new Map<object, { path: string; aliveAt: number | undefined; failure: unknown }>();
  return {
    open: (path) => {
      const report: WatchReport = {
        alive: () => void known.set(report, { path, aliveAt: monotonicMs(), failure: undefined }),
        failed: (failure) => void known.set(report, { path, aliveAt: known.get(report)?.aliveAt, failure }),
        end: () => void known.delete(report),
      };
      known.set(report, { path, aliveAt: undefined, failure: undefined });
      return report;
    },
    states: () =>
      [...known.values()].map(({ path, aliveAt, failure }) => ({
        ...readResourcePath(path),
        ageMs: aliveAt === undefined ? undefined : monotonicMs() - aliveAt,
        failure,
      })),
  };
}
