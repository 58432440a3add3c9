import type { Pool } from "pg";
import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { type RootKeyUse, upsertRootKeyUsage } from "../db/root-key-usage.ts";

/*
 * Records which permissions each root key uses, so that an administrator can remove unused permissions. Recording a use that has already
 * been recorded today costs one map lookup. New uses stay in memory until `store` is called, once a minute. A crash loses only these, and
 * later calls record them again.
 */

/** Tuple that records only that the root key was used. */
export const ANY_CALL = "";

/** Maximum number of uses that wait to be stored. Beyond it, uses are dropped, and later calls record them again. */
const WAITING_MAX = 20_000;
const ROWS_PER_STATEMENT = 500;

/** Recorder for the uses of one root key. It exists for as long as the root key is cached. */
export interface RecordsUsage {
  /**
   * Records a use. `id` is the id of the object; `undefined` if the tuple's permission is not about single objects, or the check was about
   * all objects.
   */
  readonly note: (tuple: string, id?: string) => void;
}

export interface RootKeyUsage {
  of(rootKeyId: string): RecordsUsage;
  /** Writes the new uses, and returns the number of rows. Uses that could not be written are kept for the next call. */
  store(db: Pool): Promise<number>;
}

/** Value of `onlyId` for a use that involves several objects or none. */
const SEVERAL = null;

export function createRootKeyUsage({ nowMs }: { readonly nowMs: () => number }): RootKeyUsage {
  let day = Math.floor(nowMs() / DAY_MS);
  let waiting = new Map<string, RootKeyUse>();

  /** Queues a use of a root key for storing. Returns false if the queue is full. */
  function add(use: RootKeyUse): boolean {
    const key = `${use.rootKeyId} ${use.tuple}`;
    const other = waiting.get(key);
    if (other === undefined && waiting.size >= WAITING_MAX) return false;
    // Merges two records of the same use: keeps the later day, and keeps the id only if both records have the same id.
    const merged =
      other === undefined
        ? use
        : {
            ...use,
            usedOn: use.usedOn > other.usedOn ? use.usedOn : other.usedOn,
            onlyId: use.onlyId === other.onlyId ? use.onlyId : SEVERAL,
          };
    waiting.set(key, merged);
    return true;
  }

  function of(rootKeyId: string): RecordsUsage {
    let notedOn = day;
    /** Object ids recorded on the day `notedOn`, by permission tuple. */
    const noted = new Map<string, string | typeof SEVERAL>();
    return {
      note(tuple, id = undefined) {
        if (notedOn !== day) {
          noted.clear();
          notedOn = day;
        }
        const before = noted.get(tuple);
        if (before === SEVERAL || (before !== undefined && before === id)) return;
        const onlyId = before === undefined ? (id ?? SEVERAL) : SEVERAL;
        if (add({ rootKeyId, tuple, onlyId, usedOn: utcDate(day * DAY_MS) })) noted.set(tuple, onlyId);
      },
    };
  }

  async function store(db: Pool): Promise<number> {
    // The day is computed only once per call of `store`, not for each use, so uses in the first minute after midnight count for the
    // previous day.
    day = Math.floor(nowMs() / DAY_MS);
    const uses = [...waiting.values()];
    waiting = new Map();
    for (let at = 0; at < uses.length; at += ROWS_PER_STATEMENT) {
      try {
        await upsertRootKeyUsage(db, uses.slice(at, at + ROWS_PER_STATEMENT));
      } catch (error) {
        for (const use of uses.slice(at)) add(use);
        throw error;
      }
    }
    return uses.length;
  }

  return { of, store };
}
