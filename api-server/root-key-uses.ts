import type { Pool } from "pg";
import { DAY_MS, utcDate } from "../core/utc-date.ts";
import { type RootKeyUse, upsertRootKeyUses } from "./store/root-key-uses.ts";

/*
 * Notes which permissions each root key is really asked for, so that one that holds more than it needs can be narrowed. A use that was
 * noted today costs a look into a map. What is new waits in memory until `store`, which the api-server calls once a minute; what a crash
 * loses is noted again by a later call, because the next process has noted nothing.
 */

/** The tuple of a use that says no more than that the root key was used. */
export const ANY_CALL = "";

/** What waits to be stored. More are not taken; they are noted by later calls. */
const WAITING_MAX = 20_000;
const ROWS_PER_STATEMENT = 500;

/** Of one root key, for as long as it is cached. */
export interface NotesUses {
  /** `id` of the object that was asked for; undefined where the tuple stands for no object or the question was about all. */
  readonly note: (tuple: string, id?: string) => void;
}

export interface RootKeyUses {
  of(rootKeyId: string): NotesUses;
  /** Writes what is new, and returns how many rows that were. What could not be written waits for the next time. */
  store(db: Pool): Promise<number>;
}

/** Stands for several ids, and for none. */
const SEVERAL = null;

export function createRootKeyUses({ nowMs }: { readonly nowMs: () => number }): RootKeyUses {
  let day = Math.floor(nowMs() / DAY_MS);
  let waiting = new Map<string, RootKeyUse>();

  /** Returns false when there is no room. */
  function add(use: RootKeyUse): boolean {
    const key = `${use.rootKeyId} ${use.tuple}`;
    const other = waiting.get(key);
    if (other === undefined && waiting.size >= WAITING_MAX) return false;
    // Of two days the later one. What was noted of one process in two parts is about several ids unless they agree.
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

  function of(rootKeyId: string): NotesUses {
    let notedOn = day;
    /** By tuple: the id that was noted. */
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
    // The day is looked at here and not at each call: a use of the first minute after midnight counts as one of the day before.
    day = Math.floor(nowMs() / DAY_MS);
    const uses = [...waiting.values()];
    waiting = new Map();
    for (let at = 0; at < uses.length; at += ROWS_PER_STATEMENT) {
      try {
        await upsertRootKeyUses(db, uses.slice(at, at + ROWS_PER_STATEMENT));
      } catch (error) {
        for (const use of uses.slice(at)) add(use);
        throw error;
      }
    }
    return uses.length;
  }

  return { of, store };
}
