import { BoundedCache } from "../../edge/bounded-cache.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { RecordKind } from "../../edge/records.ts";
import { PROPAGATION_BOUND_MS } from "../health/health.ts";

/*
 * Caches records by the hash of a secret, for lookups in which the workspace is not known in advance but follows from the record. An entry,
 * positive or negative, is dropped when the change stream reports a change of the record or its workspace. While that stream is more stale
 * than the workspace's propagation bound allows, the entry is not used.
 */

/**
 * Maximum number of negative cache entries. Untrusted clients can create any number of these, so they are in a separate cache, where they
 * cannot evict positive entries.
 */
const ABSENCES_MAX = 10_000;

/** `absent`: no record has this hash, or the record or its workspace is deleted. */
export type CachedValue<T> = T | "absent";

export interface HashCache<T> {
  /**
   * Returns a fresh cached entry synchronously, otherwise a promise of an entry that is read from the database. Concurrent callers with the
   * same hash share one read.
   */
  find(hash: string): CachedValue<T> | Promise<CachedValue<T>>;
}

export function createHashCache<T extends object>({
  projection,
  kind,
  entriesMax,
  workspaceOf,
  read,
}: {
  readonly projection: Pick<Projection, "onDropped" | "stalenessMs">;
  /** Kind of the cached records. */
  readonly kind: RecordKind;
  readonly entriesMax: number;
  readonly workspaceOf: (value: T) => string;
  readonly read: (hash: string) => Promise<T | undefined>;
}): HashCache<T> {
  const found = new BoundedCache<string, T>(entriesMax);
  const absent = new BoundedCache<string, "absent">(ABSENCES_MAX);
  const pending = new Map<string, Promise<CachedValue<T>>>();

  projection.onDropped((ref) => {
    if (ref?.kind === kind) {
      found.delete(ref.id);
      absent.delete(ref.id);
      // A read in flight may have seen the state before the change. Callers that already wait for it use its result, but later callers read
      // again.
      pending.delete(ref.id);
    } else if (ref === undefined || ref.kind === "workspace") {
      found.clear();
      absent.clear();
      pending.clear();
    }
  });

  /** Reads the record, and caches the result unless the entry was dropped in the meantime. */
  function ask(hash: string): Promise<CachedValue<T>> {
    const asked = read(hash)
      .then((value): CachedValue<T> => {
        if (pending.get(hash) === asked) {
          if (value === undefined) absent.set(hash, "absent");
          else found.set(hash, value);
        }
        return value ?? "absent";
      })
      .finally(() => {
        if (pending.get(hash) === asked) pending.delete(hash);
      });
    pending.set(hash, asked);
    return asked;
  }

  return {
    find(hash) {
      const known = found.get(hash);
      // The workspace of a negative entry is unknown, so the entry counts as stale as the stalest workspace.
      const isFresh = projection.stalenessMs(known && workspaceOf(known)) <= PROPAGATION_BOUND_MS;
      const cached = isFresh ? (known ?? absent.get(hash)) : undefined;
      return cached ?? pending.get(hash) ?? ask(hash);
    },
  };
}
