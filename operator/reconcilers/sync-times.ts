import type { ManifestObject } from "../source/contract.ts";

/**
 * Time at which each object last matched the database. The time is a metric, not part of the status, because a status that changes with
 * every comparison would cause continuous writes to Kubernetes.
 */
export interface SyncTimes {
  note(object: ManifestObject, atMs: number): void;
  /** Returns the oldest of the last times at which these objects matched; `undefined` if none ever matched. */
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
