import { type ResourcePath, readResourcePath } from "./resource-path.ts";

/* What the watches of a client know about themselves, for readiness and metrics. */

export interface WatchState extends ResourcePath {
  /** Since it was last certain that nothing was missed: a list, an accepted watch, an event or a bookmark. undefined before the first list. */
  readonly ageMs: number | undefined;
  /** Why the last try failed; undefined when it did not. */
  readonly failure: unknown;
}

/** How one watch tells about itself. */
export interface WatchReport {
  /** Nothing was missed until now. */
  alive(): void;
  failed(error: unknown): void;
  /** It was closed on purpose, and is no longer among the states. */
  end(): void;
}

export interface Watches {
  /** `path` is that of a collection. */
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
