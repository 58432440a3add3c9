import { setImmediate as endOfTurn } from "node:timers/promises";
import { BoundedCache } from "../bounded-cache.ts";
import { REFERRED_KINDS, type RecordKind, type RecordRef } from "../records.ts";
import {
  allOf,
  type CachedEntry,
  type MaybePromise,
  type ReadBatch,
  type RecordSource,
  type RefusedKind,
  type SourceState,
} from "./contract.ts";
import { readRecordData } from "./record-schemas.ts";

/*
 * Cached records as they were last read. Three terms describe their state:
 *
 *   live     no change was seen since the read. A change removes the record immediately and permanently.
 *   fresh    live, and read since the last reset. A reset makes all records live but not fresh: each is read again before use, and
 *            used without that only while the source is unusable.
 *   cached   stored in the cache. A read during which its record changed, or a reset came, is used once and not cached. A request that
 *            starts after the change never gets it.
 *
 * Negative entries are cached separately, so that made-up keys do not evict real ones, and are used only while fresh.
 */

export interface CachedRecord {
  readonly state: "found" | "gone";
  readonly value: unknown;
  readonly generation: number;
  /** Length of the record's text; 0 if the length is unknown. */
  readonly length: number;
  isLive: boolean;
}

/** Result of one record lookup. `missing` means that no record was found; the caller decides what follows from this. */
export type Outcome =
  | { readonly kind: "record"; readonly record: CachedRecord }
  | { readonly kind: "missing" }
  /** `isRefused`: the value is not a valid record of its kind. `isLater`: a newer version wrote the record. */
  | { readonly kind: "unusable"; readonly reason: string; readonly isRefused?: true; readonly isLater?: true };

interface FailedRead {
  readonly refs: readonly RecordRef[];
  readonly reason: string;
}

interface InFlight {
  readonly outcome: Promise<Outcome>;
  isDirty: boolean;
}

/** References to records of one workspace that are read from the source together. */
interface Batch {
  readonly refs: RecordRef[];
  readonly read: Promise<ReadBatch>;
}

/** Maximum number of refs in a batch, because Redis runs nothing else while it returns their records. */
const BATCH_REFS_MAX = 64;

interface NegativeEntry {
  readonly outcome: Outcome;
  readonly generation: number;
}

export interface RecordCacheOptions {
  readonly source: RecordSource;
  readonly records: number;
  readonly absences: number;
  /** Approximate maximum memory of all records, in bytes. */
  readonly bytes: number;
  /** Returns whether the workspace's change stream is fresh enough to use negative entries. */
  readonly usesNegativeEntry: (workspaceId: string) => boolean;
  readonly onRefused: (what: RefusedKind) => void;
}

/** Generation of restored records. It is lower than all generations of this process. */
const NEVER_FRESH = -1;

const GONE: CachedRecord = { state: "gone", value: undefined, generation: -1, length: 0, isLive: false };

/** Approximate memory of a record, as measured: a fixed overhead for a parsed record, and bytes per character of its text. */
const bytesOf = ({ length }: CachedRecord): number => 500 + 2 * length;

export class RecordCache {
  readonly #options: RecordCacheOptions;
  readonly #records: BoundedCache<string, CachedRecord>;
  readonly #absences: BoundedCache<string, NegativeEntry>;
  readonly #inFlight = new Map<string, InFlight>();
  /** Batches that are read at the end of this turn of the event loop, by workspace. */
  readonly #batches = new Map<string, Batch>();
  #failed: FailedRead | undefined;
  #isPollingAgain = false;
  #generation = 0;
  #changes = 0;
  #forgotten = 0;

  constructor(options: RecordCacheOptions) {
    this.#options = options;
    this.#records = new BoundedCache(options.records, options.bytes);
    this.#absences = new BoundedCache(options.absences);
  }

  get sizes(): { records: number; absences: number } {
    return { records: this.#records.size, absences: this.#absences.size };
  }

  get sourceState(): SourceState {
    return this.#failed === undefined ? { usable: true } : { usable: false, reason: this.#failed.reason };
  }

  /** Repeats the last failed read to check whether the source is readable now. */
  async pollAgain(refs = this.#failed?.refs): Promise<void> {
    if (refs === undefined || this.#isPollingAgain) return;
    this.#isPollingAgain = true;
    await this.#read(refs);
    this.#isPollingAgain = false;
  }

  /** Number of the cache's current generation. Each reset increases it. */
  get generation(): number {
    return this.#generation;
  }

  /** Number that each change, eviction and reset increases. While it is unchanged, all live records have remained live. */
  get changes(): number {
    return this.#changes;
  }

  /** Number of cached records dropped because of a change or a reset. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Restores the cache of an earlier process. The records are live but not fresh. Unreadable records are omitted. */
  restore(workspaceId: string, { kind, id, value }: CachedEntry, length: number): void {
    const ref = { workspaceId, kind, id };
    if (value === undefined) {
      if (REFERRED_KINDS.has(kind)) this.#restore(ref, { ...GONE, isLive: true });
      return;
    }
    const read = readRecordData(kind, value);
    if (read.success) {
      this.#restore(ref, { state: "found", value: read.value, generation: NEVER_FRESH, length, isLive: true });
    }
  }

  #restore(ref: RecordRef, record: CachedRecord): void {
    for (const evicted of this.#records.set(recordName(ref), record, bytesOf(record))) evicted.isLive = false;
  }

  /** Returns the cached records of the only cached workspace. */
  *known(workspaceId: string): Iterable<CachedEntry> {
    for (const [name, record] of this.#records.list()) {
      const kindEnds = name.indexOf(":");
      const id = name.slice(kindEnds + workspaceId.length + 2);
      yield { kind: name.slice(0, kindEnds) as RecordKind, id, value: record.value };
    }
  }

  drop(ref: RecordRef): void {
    const name = recordName(ref);
    this.#changes += 1;
    const record = this.#records.get(name);
    if (record !== undefined) {
      this.#forgotten += 1;
      record.isLive = false;
      this.#records.delete(name);
    }
    this.#absences.delete(name);
    const reading = this.#inFlight.get(name);
    if (reading !== undefined) {
      reading.isDirty = true;
      this.#inFlight.delete(name);
    }
  }

  reset(): void {
    this.#generation += 1;
    this.#changes += 1;
    this.#absences.clear();
    for (const reading of this.#inFlight.values()) reading.isDirty = true;
    this.#inFlight.clear();
  }

  /** Drops all records. After a reset, earlier records can still serve as a fallback; after this call they cannot. */
  forgetAll(): void {
    this.reset();
    this.#forgotten += this.#records.size;
    for (const record of this.#records.values()) record.isLive = false;
    this.#records.clear();
  }

  /**
   * Returns the cached or read outcome of each record, in order; synchronously if all are cached. Records that are not cached are read in
   * one batch, together with those of other calls in the same turn of the event loop, and no record is read twice concurrently. `bypass`
   * reads all records again. All refs must belong to one workspace.
   */
  get(refs: readonly RecordRef[], bypass: boolean): MaybePromise<Outcome[]> {
    const outcomes: (MaybePromise<Outcome> | undefined)[] = refs.map((ref) =>
      bypass ? undefined : (this.#fresh(ref) ?? this.#join(ref)),
    );
    const toRead = refs.filter((_, i) => outcomes[i] === undefined);
    if (toRead.length > 0) {
      const started = this.#startReading(toRead);
      let next = 0;
      for (const [i, outcome] of outcomes.entries()) if (outcome === undefined) outcomes[i] = started[next++];
    }
    return allOf(outcomes as MaybePromise<Outcome>[]);
  }

  /** Returns a live record of any age, or a fresh negative entry, for use while the source is unusable. */
  fallback(ref: RecordRef): Outcome | undefined {
    const name = recordName(ref);
    const record = this.#records.get(name);
    if (record?.isLive === true) return { kind: "record", record };
    return this.#freshNegativeEntry(name, ref);
  }

  #fresh(ref: RecordRef): Outcome | undefined {
    const name = recordName(ref);
    const record = this.#records.get(name);
    if (record?.isLive === true && record.generation === this.#generation) return { kind: "record", record };
    return this.#freshNegativeEntry(name, ref);
  }

  #freshNegativeEntry(name: string, { workspaceId }: RecordRef): Outcome | undefined {
    const absence = this.#absences.get(name);
    if (absence === undefined || absence.generation !== this.#generation) return undefined;
    return this.#options.usesNegativeEntry(workspaceId) ? absence.outcome : undefined;
  }

  #join(ref: RecordRef): Promise<Outcome> | undefined {
    return this.#inFlight.get(recordName(ref))?.outcome;
  }

  #startReading(refs: readonly RecordRef[]): Promise<Outcome>[] {
    const generation = this.#generation;
    const batch = this.#batchFor(refs);
    const first = batch.refs.length;
    batch.refs.push(...refs);
    return refs.map((ref, i) => {
      const name = recordName(ref);
      const reading: InFlight = {
        isDirty: false,
        outcome: batch.read.then((read) => {
          if (this.#inFlight.get(name) === reading) this.#inFlight.delete(name);
          const outcome = outcomeOf(ref, read, first + i, generation);
          if (outcome.kind === "unusable" && outcome.isRefused === true) this.#options.onRefused("record");
          if (!reading.isDirty) this.#keep(ref, outcome);
          else if (outcome.kind === "record") outcome.record.isLive = false;
          return outcome;
        }),
      };
      // With `bypass`, two reads of one record can be in flight, and a change must invalidate both.
      const other = this.#inFlight.get(name);
      if (other !== undefined) other.isDirty = true;
      this.#inFlight.set(name, reading);
      return reading.outcome;
    });
  }

  /** Returns the batch of this turn that has room for these refs. */
  #batchFor([ref, ...others]: readonly RecordRef[]): Batch {
    const workspaceId = ref?.workspaceId ?? "";
    const open = this.#batches.get(workspaceId);
    if (open !== undefined && open.refs.length + others.length < BATCH_REFS_MAX) return open;
    const refs: RecordRef[] = [];
    const read = async (): Promise<ReadBatch> => {
      await endOfTurn();
      if (this.#batches.get(workspaceId) === batch) this.#batches.delete(workspaceId);
      return this.#read(refs);
    };
    const batch: Batch = { refs, read: read() };
    this.#batches.set(workspaceId, batch);
    return batch;
  }

  async #read(refs: readonly RecordRef[]): Promise<ReadBatch> {
    let batch: ReadBatch;
    try {
      batch = await this.#options.source.read(refs);
    } catch (error) {
      batch = { usable: false, reason: error instanceof Error ? error.message : String(error) };
    }
    this.#failed = batch.usable ? undefined : { refs, reason: batch.reason };
    if (!batch.usable && batch.refused !== undefined) this.#options.onRefused(batch.refused);
    return batch;
  }

  #keep(ref: RecordRef, outcome: Outcome): void {
    if (outcome.kind === "unusable") {
      // Drops the earlier record instead of using it as a fallback, because it may lack a restriction that the newer record has.
      if (outcome.isLater === true) this.drop(ref);
      return;
    }
    const name = recordName(ref);
    const before = this.#records.get(name);
    if (before?.isLive === true) {
      before.isLive = false;
      this.#changes += 1;
    }
    if (outcome.kind === "record" && (outcome.record.state === "found" || REFERRED_KINDS.has(ref.kind))) {
      this.#absences.delete(name);
      const evicted = this.#records.set(name, outcome.record, bytesOf(outcome.record));
      for (const each of evicted) each.isLive = false;
      if (evicted.length > 0) this.#changes += 1;
      return;
    }
    this.#records.delete(name);
    // A missing record of a kind that keys refer to is unknown rather than absent, so no negative entry is cached.
    if (!REFERRED_KINDS.has(ref.kind)) this.#absences.set(name, { outcome, generation: this.#generation });
  }
}

const recordName = (ref: RecordRef): string => `${ref.kind}:${ref.workspaceId}/${ref.id}`;

function outcomeOf(ref: RecordRef, batch: ReadBatch, place: number, generation: number): Outcome {
  const read = batch.usable ? batch.records[place] : batch.partial?.[place];
  if (read === undefined || read.state === "missing") {
    return batch.usable ? { kind: "missing" } : { kind: "unusable", reason: batch.reason };
  }
  if (read.state === "gone") return { kind: "record", record: { ...GONE, generation, isLive: true } };
  if (read.state === "unreadable") return refuse(ref, read);
  const data = readRecordData(ref.kind, read.data);
  if (!data.success) return refuse(ref, data);
  return {
    kind: "record",
    record: { state: "found", value: data.value, generation, length: read.length ?? 0, isLive: true },
  };
}

const refuse = ({ kind }: RecordRef, why: { readonly problem: string; readonly isLater?: true }): Outcome => ({
  kind: "unusable",
  reason: `the ${kind} record cannot be read: ${why.problem}`,
  isRefused: true,
  ...(why.isLater === true ? { isLater: true } : {}),
});
