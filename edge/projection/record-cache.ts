import { BoundedCache } from "../bounded-cache.ts";
import { REFERRED_KINDS, type RecordKind, type RecordRef } from "../records.ts";
import type { KnownRecord, ReadBatch, RecordSource, RefusedKind, SourceState } from "./contract.ts";
import { readRecordData } from "./record-schemas.ts";

/*
 * Records as they were last read. Three words matter:
 *
 *   live   no change of it was seen since it was read. A change removes the record at once and for good.
 *   fresh  live, and read since the last reset. After a reset everything is live but not fresh: it is read again before use, and
 *          used without that only while the source is unusable.
 *   kept   put into the cache. A read during which its record changed, or a reset came, is used once and not kept; a request that
 *          starts after the change never gets it.
 *
 * Absence is cached separately, so that made-up keys do not evict real ones, and is used only while it is fresh.
 */

export interface CachedRecord {
  readonly state: "found" | "gone";
  readonly value: unknown;
  readonly generation: number;
  /** Of its text; 0 when that is not known. */
  readonly length: number;
  isLive: boolean;
}

/** The result of looking up one record. `missing` means that nothing is known; only the caller can judge that. */
export type Outcome =
  | { readonly kind: "record"; readonly record: CachedRecord }
  | { readonly kind: "missing" }
  /** `isRefused`: the value is not a record of its kind; `isLater`: or is one of a later release. */
  | { readonly kind: "unusable"; readonly reason: string; readonly isRefused?: true; readonly isLater?: true };

interface FailedRead {
  readonly refs: readonly RecordRef[];
  readonly reason: string;
}

interface InFlight {
  readonly outcome: Promise<Outcome>;
  isDirty: boolean;
}

interface Absence {
  readonly outcome: Outcome;
  readonly generation: number;
}

export interface RecordCacheOptions {
  readonly source: RecordSource;
  readonly records: number;
  readonly absences: number;
  /** About how many bytes of memory the records may take together. */
  readonly bytes: number;
  /** Whether the feed is fresh enough, for this workspace, to use cached absence. */
  readonly believesAbsence: (workspaceId: string) => boolean;
  readonly onRefused: (what: RefusedKind) => void;
}

/** Of what an earlier process had read: below every generation of this one. */
const NEVER_FRESH = -1;

const GONE: CachedRecord = { state: "gone", value: undefined, generation: -1, length: 0, isLive: false };

/** Measured: what a parsed record takes beside its text, and per character of it. */
const bytesOf = ({ length }: CachedRecord): number => 500 + 2 * length;

export class RecordCache {
  readonly #options: RecordCacheOptions;
  readonly #records: BoundedCache<string, CachedRecord>;
  readonly #absences: BoundedCache<string, Absence>;
  readonly #inFlight = new Map<string, InFlight>();
  #failed: FailedRead | undefined;
  #isLookingAgain = false;
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

  /** Repeats the last read that failed, only to learn whether the source is readable now. */
  async lookAgain(refs = this.#failed?.refs): Promise<void> {
    if (refs === undefined || this.#isLookingAgain) return;
    this.#isLookingAgain = true;
    await this.#read(refs);
    this.#isLookingAgain = false;
  }

  /** Increases with each reset. */
  get generation(): number {
    return this.#generation;
  }

  /** Increases with each change, eviction and reset: while it is the same, everything that was live still is. */
  get changes(): number {
    return this.#changes;
  }

  /** How many known records were given up because they changed, or everything was. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Keeps what an earlier process had read: live and not fresh. Leaves out what cannot be read. */
  restore(workspaceId: string, { kind, id, value }: KnownRecord, length: number): void {
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

  /** The records of the one workspace that is cached. */
  *known(workspaceId: string): Iterable<KnownRecord> {
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

  /** Unlike after a reset, cached records are not live any more, so that no fallback uses them. */
  forgetAll(): void {
    this.reset();
    this.#forgotten += this.#records.size;
    for (const record of this.#records.values()) record.isLive = false;
    this.#records.clear();
  }

  /**
   * Returns what is known or can be read of each record, in order. Missing ones are read in one batch; a record is not read twice at
   * the same time. `bypass` reads everything again. All refs are of one workspace.
   */
  async get(refs: readonly RecordRef[], bypass: boolean): Promise<Outcome[]> {
    const outcomes = refs.map((ref) => (bypass ? undefined : this.#fresh(ref)) ?? this.#join(ref, bypass));
    const toRead = refs.filter((_, i) => outcomes[i] === undefined);
    if (toRead.length > 0) {
      const started = this.#startReading(toRead);
      let next = 0;
      for (const [i, outcome] of outcomes.entries()) if (outcome === undefined) outcomes[i] = started[next++];
    }
    return (await Promise.all(outcomes)) as Outcome[];
  }

  /** For when the source is unusable: a record that is live, however old, or fresh absence. */
  fallback(ref: RecordRef): Outcome | undefined {
    const record = this.#records.get(recordName(ref));
    if (record?.isLive === true) return { kind: "record", record };
    return this.#freshAbsence(ref);
  }

  #fresh(ref: RecordRef): Outcome | undefined {
    const record = this.#records.get(recordName(ref));
    if (record?.isLive === true && record.generation === this.#generation) return { kind: "record", record };
    return this.#freshAbsence(ref);
  }

  #freshAbsence(ref: RecordRef): Outcome | undefined {
    const absence = this.#absences.get(recordName(ref));
    if (absence === undefined || absence.generation !== this.#generation) return undefined;
    return this.#options.believesAbsence(ref.workspaceId) ? absence.outcome : undefined;
  }

  #join(ref: RecordRef, bypass: boolean): Promise<Outcome> | undefined {
    return bypass ? undefined : this.#inFlight.get(recordName(ref))?.outcome;
  }

  #startReading(refs: readonly RecordRef[]): Promise<Outcome>[] {
    const generation = this.#generation;
    const batch = this.#read(refs);
    return refs.map((ref, i) => {
      const name = recordName(ref);
      const reading: InFlight = {
        isDirty: false,
        outcome: batch.then((read) => {
          if (this.#inFlight.get(name) === reading) this.#inFlight.delete(name);
          const outcome = outcomeOf(ref, read, i, generation);
          if (outcome.kind === "unusable" && outcome.isRefused === true) this.#options.onRefused("record");
          if (!reading.isDirty) this.#keep(ref, outcome);
          else if (outcome.kind === "record") outcome.record.isLive = false;
          return outcome;
        }),
      };
      // With `bypass`, two reads of one record can be in flight; a change must reach both.
      const other = this.#inFlight.get(name);
      if (other !== undefined) other.isDirty = true;
      this.#inFlight.set(name, reading);
      return reading.outcome;
    });
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
      // The earlier record is not used instead: it may lack a restriction that the later one has.
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
    // A missing record that others refer to is unknown rather than absent, so there is nothing to cache.
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
