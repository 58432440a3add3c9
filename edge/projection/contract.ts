import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import type { NamespaceRecord, OverrideRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { Closeable } from "../closeable.ts";
import { REFERRED_KINDS, type RecordRef } from "../records.ts";

/*
 * How what verification needs to know gets from Postgres to the place where it is decided.
 *
 *   relay ──► RecordWriter ──► (Redis or memory) ──► RecordSource ─┐
 *                    └────────► change feed ───────► ChangeFeed ───┴─► Projection (cache, staleness)
 *
 * The api-server uses the same Projection over a RecordSource that reads Postgres itself.
 */

/**
 * A record, the word that there is none any more (`gone`: a tombstone), that nothing is known of it (`missing`), or that
 * something is there that is no record (`unreadable`), which must not be taken for any of the others.
 */
export type ReadRecord =
  | { readonly state: "found"; readonly version: number; readonly data: unknown }
  | { readonly state: "gone" }
  | { readonly state: "missing" }
  | { readonly state: "unreadable"; readonly problem: string };

/**
 * `usable: false`: the store is unreachable, has gone back in time, or a record is missing in a projection that is not
 * complete, so that absence means nothing.
 */
export type ReadBatch =
  | { readonly usable: true; readonly records: readonly ReadRecord[] }
  | {
      readonly usable: false;
      readonly reason: string;
      /** In a projection that is not complete: what is there all the same, which is right; 'missing' here means nothing. */
      readonly partial?: readonly ReadRecord[];
      /** The mark is there, and is none. */
      readonly refused?: "mark";
    };

/** Raw reads, in the order of the refs, all of one workspace. Never throws for an unreachable store: `usable: false`. */
export interface RecordSource {
  read(refs: readonly RecordRef[]): Promise<ReadBatch>;
}

/** `central` is the feed of all workspaces, which api-server replicas follow. */
export type FeedId = { readonly workspaceId: string } | "central";

/** What can be read from a store that others write to, and not be believed. */
export type RefusedKind = "mark" | "record" | "entry" | "heartbeat";

export interface FeedListener {
  /** The record changed: forget what is cached of it. */
  onChange(ref: RecordRef): void;
  /**
   * Entries were missed, the projection was made anew, or the store has gone back in time: forget everything. While a store
   * that went back is not projected anew no heartbeat is told, so that nothing which is read from it looks fresh. `forget`: what
   * was missed is not told again, so that nothing of before may be used any more, not even while the store cannot be read.
   */
  onReset(reason: string, options?: { readonly forget: boolean }): void;
  /**
   * Everything committed before `asOfMs` (clock of the shared store) has been delivered on this feed, except for the
   * workspaces in `lagging`: of these, everything committed before their own, earlier time. The feed of one workspace names
   * none: its time is that workspace's own.
   */
  onHeartbeat(asOfMs: number, lagging?: ReadonlyMap<string, number>): void;
  /** Something on the feed was not believed; what that led to was told before. */
  onRefused?(what: RefusedKind, problem: string): void;
}

export interface ChangeFeed {
  /** Starts following from now; entries that come while it starts are not lost. Reconnects by itself until closed. */
  follow(feed: FeedId, listener: FeedListener): Promise<Closeable>;
  /**
   * The shared store's clock, Unix ms with fractions, estimated from a monotonic one so that it never runs behind; undefined
   * when not known yet. It goes back when that clock was set back.
   */
  storeNowMs(): number | undefined;
}

export interface RecordWrite {
  readonly ref: RecordRef;
  /** The record, as a value or as the text that Postgres made of it; undefined writes a tombstone. */
  readonly data: unknown;
  /** Of a tombstone: nothing names it any more, so that it need not stay, whatever its kind. */
  readonly isRemoved?: true;
}

/** A tombstone is kept this long, so that a slow relay cannot bring the record back. */
export const TOMBSTONE_KEPT_MS = 24 * 60 * 60 * 1000;

/** Whether a tombstone is kept without an end instead. */
export const staysForGood = ({ ref, isRemoved }: RecordWrite): boolean => REFERRED_KINDS.has(ref.kind) && !isRemoved;

/** JSON that is passed on as it is: reading and writing it again would cost more than all else that is done with a record. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The JSON of a record to be written; undefined for a tombstone. */
export function jsonOf({ data }: RecordWrite): string | undefined {
  if (data === undefined) return undefined;
  return data instanceof JsonText ? data.text : JSON.stringify(data);
}

/** What the relay learns of the store when it takes over: the relay decides from it whether all must be projected anew. */
export interface StoreState {
  /** The projection that the store holds, undefined when it holds none. */
  readonly projectionId: string | undefined;
  readonly complete: boolean;
  /** Entries written to the central feed so far in this projection. */
  readonly head: number;
  /** Highest record version written. */
  readonly version: number;
  /** Time of the last heartbeat, by the store's clock; 0 when there was none. */
  readonly asOfMs: number;
  /** Changes when the store restarted, and so may have gone back in time. */
  readonly runId: string;
}

export interface BeginOptions {
  /** Readers do not go on using what they have until it is complete: changes that they may have missed are not announced again. */
  readonly forget?: boolean;
  /**
   * Where there is no record yet, that of the projection before this one may be used, if that was complete, from the first
   * heartbeat on: what the store may have lost of it is written and announced again before that.
   */
  readonly usePrevious?: boolean;
}

/**
 * What became of single workspaces in a call that went well for all others. A workspace that has lost its mark, or whose part of
 * the store does not take what is written because somebody else wrote to it, is begun anew under a projection id of its own.
 */
export interface WorkspacesAnew {
  /** Begun anew in this call: all that they have is to be written, and `completeWorkspace` called. */
  readonly begun: readonly string[];
}

/** The relay's side. All methods throw when the store cannot be reached; each is safe to repeat. */
export interface RecordWriter {
  state(): Promise<StoreState>;
  /**
   * Begins a new projection: readers drop what they have, and treat absence as 'not usable' until `complete`. When it has begun
   * already, workspaces that it does not know join it.
   */
  begin(projectionId: string, workspaceIds: readonly string[], options?: BeginOptions): Promise<void>;
  /**
   * Writes records (an older version never replaces a newer one) and then announces them on the feed of their workspace and on
   * the central one, unless `announce` is false. Writes are made in the order given, so referred-to records come first.
   * Throws `ProjectionChanged` when the store does not hold `projectionId`.
   */
  write(batch: {
    projectionId: string;
    version: number;
    writes: readonly RecordWrite[];
    announce?: boolean;
  }): Promise<WorkspacesAnew>;
  /**
   * Marks the projection complete for these workspaces: from now on absence means 'there is none'. Those that were begun anew
   * under an id of their own are left out. `version` is the highest one that was written without being announced.
   */
  complete(projectionId: string, workspaceIds: readonly string[], version?: number): Promise<void>;
  /** Marks one workspace complete that was begun anew. */
  completeWorkspace(workspaceId: string): Promise<void>;
  /** The store's clock, to be read before the outbox is scanned. */
  nowMs(): Promise<number>;
  /**
   * Tells the readers that everything committed before `asOfMs` has been delivered. `lagging` has the workspaces of which only an
   * earlier time is true; 0: none that is known, so that nothing is said to their readers. `incomplete` are workspaces that are
   * not complete yet, such as those that another writer began anew and did not finish.
   */
  heartbeat(
    projectionId: string,
    asOfMs: number,
    workspaceIds: readonly string[],
    lagging?: ReadonlyMap<string, number>,
  ): Promise<WorkspacesAnew & { readonly incomplete: readonly string[] }>;
}

/** The store holds another projection than the writer thinks: it was flushed, or another relay took over. */
export class ProjectionChanged extends Error {
  override name = "ProjectionChanged";
}

export type Lookup<T> =
  /** `stale`: read before the last reset or gap, and given because the source is not usable now. */
  | { readonly status: "found"; readonly value: T; readonly stale?: true }
  | { readonly status: "absent" }
  /** `isRefused`: there is a record, and this release cannot make one of it. */
  | { readonly status: "unusable"; readonly reason: string; readonly isRefused?: true };

export type SourceState = { readonly usable: true } | { readonly usable: false; readonly reason: string };

/** The cached reader on which decisions are based. It knows how fresh its data is. One per process. */
export interface Projection extends Closeable {
  /** Returns a cached key itself, without a promise or any I/O: the hot path. Otherwise a promise of what the source says. */
  findKey(workspaceId: string, hash: string): Lookup<KeyView> | Promise<Lookup<KeyView>>;
  findPolicy(workspaceId: string, policyId: string): Promise<Lookup<PolicyRecord>>;
  /** The override in force for an identifier: the exact one, else the best pattern (api-v2.md section 9.3). */
  findOverride(workspaceId: string, namespaceId: string, identifier: string): Promise<Lookup<OverrideRecord>>;
  findNamespace(workspaceId: string, namespaceId: string): Promise<Lookup<NamespaceRecord>>;
  findNamespaceByName(workspaceId: string, name: string): Promise<Lookup<NamespaceRecord>>;
  /** Forgets records at once (own writes); reads of them that are under way are used once and not kept. */
  drop(refs: readonly RecordRef[]): void;
  /**
   * Forgets everything, for a transaction that changed more records than are worth listing. Unlike after a reset of the feed,
   * nothing of before is used again, also not while the source is not usable; reads under way are used once and not kept.
   */
  forgetAll(): void;
  /**
   * How old the newest knowledge of a workspace may be, ms; without one, of the workspace of which it is oldest. Everything
   * committed longer ago has been processed. Infinity before the first heartbeat. Never smaller than it is.
   */
  stalenessMs(workspaceId?: string): number;
  /** The same of every workspace but those that lag behind the others, and how many those are. */
  feedStaleness(): { readonly ms: number; readonly laggingWorkspaces: number };
  /** Whether the last read from the source could be used. One that could not is repeated with each heartbeat. */
  sourceState(): SourceState;
  /** How much of what was read was not believed since the start, by what it was. */
  refused(): Readonly<Record<RefusedKind, number>>;
  /** How many entries each cache holds, for the metrics. */
  cacheSizes(): { readonly keys: number; readonly records: number; readonly absences: number };
  /** Called after a record was dropped because it changed, and with undefined after everything was dropped. */
  onDropped(listener: (ref: RecordRef | undefined) => void): void;
}
