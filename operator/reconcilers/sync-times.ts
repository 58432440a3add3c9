import type { ManifestObject } from "../source/contract.ts";

/**
 * Remembers when each object last matched the database. The time is a metric and not part of the status, because it changes with every
 * comparison and would cause continuous writes to Kubernetes.
 */
export interface SyncTimes {
  note(object: ManifestObject, atMs: number): void;
  /** Returns the oldest of the times at which these objects last matched the database; `undefined` if none ever matched. */
  oldestMs(objects: readonly ManifestObject[]): number | undefined;
  forget(object: ManifestObject): void;
}

export function createSyncTimes(): SyncTimes {
  const times = new Map<string, number>();
  return {
    note: ({ metadata }, atMs) => {
      times.set(metadata.uid, atMs);
    },
    oldestMs: (objects) => {
      let oldest: number | undefined;
      for (const { metadata } of objects) {
        const atMs = times.get(metadata.uid);
        if (atMs !== undefined && (oldest === undefined || atMs < oldest)) oldest = atMs;
      }
      return oldest;
    },
    forget: ({ metadata }) => {
      times.delete(metadata.uid);
    },
  };
}
