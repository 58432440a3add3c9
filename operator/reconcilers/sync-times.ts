import type { ManifestObject } from "../source/contract.ts";

/**
 * When each object was last compared with the store and found or made equal. It is a metric and no part of the status: a status that
 * changes with every comparison would be a write to Kubernetes for every object, for ever.
 */
export interface SyncTimes {
  note(object: ManifestObject, atMs: number): void;
  /** Of these objects, the time of the one whose comparison is longest ago; undefined when none of them was ever equal. */
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
