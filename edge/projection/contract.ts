import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import type { NamespaceRecord, OverrideRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { Closeable } from "../closeable.ts";
import { REFERRED_KINDS, type RecordKind, type RecordRef } from "../records.ts";

/*
 * How the data for verification gets from Postgres to the place where a verification is decided.
 *
 *   relay ──► RecordWriter ──► (Redis or memory) ──► RecordSource ─┐
 *                    └────────► change feed ───────► ChangeFeed ───┴─► Projection (cache, staleness)
 *
 * The api-server uses the same Projection over a RecordSource that reads Postgres itself.
 */

/**
 * The result of reading one record: the record; `gone`: deleted (a tombstone); `missing`: nothing is known about it; `unreadable`:
 * the value is not a record, and must not be treated as any of the other three.
 */
export type ReadRecord =
  /** `length`: of its text, where that is known without making it. */
  | { readonly state: "found"; readonly version: number; readonly data: unknown; readonly length?: number }
  | { readonly state: "gone" }
  | { readonly state: "missing" }
  | { readonly state: "unreadable"; readonly problem: string };

/**
 * `usable: false`: the store is unreachable or has gone back in time, or a record is missing in an incomplete projection, so that
 * absence means nothing.
 */
export type ReadBatch =
  | { readonly usable: true; readonly records: readonly ReadRecord[] }
  | {
      readonly usable: false;
      readonly reason: string;
      /** In an incomplete projection: the records that exist and are correct; 'missing' here means nothing. */
      readonly partial?: readonly ReadRecord[];
      /** The mark exists but is invalid. */
      readonly refused?: "mark";
    };

/** Raw reads, in the order of the refs, which are all of one workspace. Does not throw for an unreachable store: `usable: false`. */
export interface RecordSource {
  read(refs: readonly RecordRef[]): Promise<ReadBatch>;
}

/** `central` is the feed of all workspaces, which api-server replicas follow. */
export type FeedId = { readonly workspaceId: string } | "central";

/** What is read from a store that others can write to, and may be refused. */
export type RefusedKind = "mark" | "record" | "entry" | "heartbeat";

export interface FeedListener {
  /** The record changed: the listener must forget its cached copy. */
  onChange(ref: RecordRef): void;
  /**
   * Entries were missed, a new projection began, or the store has gone back in time: the listener must forget everything. Until a store
   * that went back has a new projection, no heartbeats are reported, so that data from it cannot look fresh. `forget`: the missed
   * changes are not announced again, so that earlier data must not be used any more, not even while the store is unreadable.
   */
  onReset(reason: string, options?: { readonly forget: boolean }): void;
  /**
   * Everything committed before `asOfMs` (clock of the shared store) has been delivered on this feed, except for the
   * workspaces in `lagging`: for these, everything committed before their own, earlier time. The feed of one workspace has no
   * `lagging`: its `asOfMs` is that workspace's own.
   */
  onHeartbeat(asOfMs: number, lagging?: ReadonlyMap<string, number>): void;
  /** Something on the feed was refused; a resulting change or reset was reported before this call. */
  onRefused?(what: RefusedKind, problem: string): void;
}

/** Where a reader stands in a change stream: it has heard of everything up to the entry. */
export interface FeedPosition {
  readonly projectionId: string;
  /** The number of the entry in its projection. */
  readonly n: number;
  /** The store's id of the entry. */
  readonly entryId: string;
}

export interface FollowOptions {
  /** Where an earlier reader stood: what came after it is delivered, or the listener is told to forget everything. From now on when left out. */
  readonly from?: FeedPosition;
  /** How long the start waits for the store, ms; then it goes on in the background. A second when left out. */
  readonly waitMs?: number;
}

export interface Following extends Closeable {
  /** What has been delivered. undefined before the store was first read, and while what it says is not believed. */
  position(): FeedPosition | undefined;
}

export interface ChangeFeed {
  /** Starts to follow; entries that arrive during the start are not lost. Reconnects until closed. */
  follow(feed: FeedId, listener: FeedListener, options?: FollowOptions): Promise<Following>;
  /**
   * Estimate of the shared store's clock, Unix ms with fractions, from a monotonic clock; never behind the real one. undefined while
   * unknown. Goes back when the store's clock was set back.
   */
  storeNowMs(): number | undefined;
}

export interface RecordWrite {
  readonly ref: RecordRef;
  /** The record, as a value or as the JSON text from Postgres; undefined writes a tombstone. */
  readonly data: unknown;
  /** For a tombstone: nothing refers to it any more, so it need not be kept for ever, whatever its kind. */
  readonly isRemoved?: true;
}

/** A tombstone is kept this long, so that a slow relay cannot bring the record back. */
export const TOMBSTONE_KEPT_MS = 24 * 60 * 60 * 1000;

/** Whether a tombstone is kept without an end instead. */
export const staysForGood = ({ ref, isRemoved }: RecordWrite): boolean => REFERRED_KINDS.has(ref.kind) && !isRemoved;

/** JSON that is passed on unchanged: parsing and serializing it again would cost more than all other work on a record. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns the JSON of a record to be written; undefined for a tombstone. */
export function jsonOf({ data }: RecordWrite): string | undefined {
  if (data === undefined) return undefined;
  return data instanceof JsonText ? data.text : JSON.stringify(data);
}

/** The state of the store when a relay takes over. From it the relay decides whether everything must be projected again. */
export interface StoreState {
  /** The projection in the store; undefined when there is none. */
  readonly projectionId: string | undefined;
  readonly complete: boolean;
  /** Entries written to the central feed so far in this projection. */
  readonly head: number;
  /** Highest record version written. */
  readonly version: number;
  /** Time of the last heartbeat, by the store's clock; 0 when there was none. */
  readonly asOfMs: number;
  /** Changes when the store restarts, because it may then have gone back in time. */
  readonly runId: string;
}

export interface BeginOptions {
  /** Readers must not use what they have until the projection is complete: changes that they may have missed are not announced again. */
  readonly forget?: boolean;
  /**
   * Where a record is not written yet, readers may use that of the previous projection, if that one was complete, from the first
   * heartbeat on. Before that heartbeat, everything that the store may have lost is written and announced again.
   */
  readonly usePrevious?: boolean;
}

/**
 * What happened to single workspaces in a call that succeeded for all others. If a workspace has lost its mark, or its part of the
 * store refuses writes because others wrote to it, it begins again under a projection id of its own.
 */
export interface WorkspacesAnew {
  /** Workspaces that began again in this call: write all of their records, then call `completeWorkspace`. */
  readonly begun: readonly string[];
}

/** The relay's side. All methods throw when the store is unreachable; each is safe to repeat. */
export interface RecordWriter {
  state(): Promise<StoreState>;
  /**
   * Begins a new projection: readers drop what they have, and until `complete` absence counts as 'not usable'. If the projection has
   * already begun, workspaces that are not in it yet join it.
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
   * Marks the projection complete for these workspaces: from now on absence means that there is no such record. Workspaces that began
   * again under an id of their own are left out. `version` is the highest version that was written without being announced.
   */
  complete(projectionId: string, workspaceIds: readonly string[], version?: number): Promise<void>;
  /** Marks one workspace complete that began again. */
  completeWorkspace(workspaceId: string): Promise<void>;
  /** The store's clock. Must be read before the outbox is scanned. */
  nowMs(): Promise<number>;
  /**
   * Tells the readers that everything committed before `asOfMs` has been delivered. `lagging` maps workspaces for which only an
   * earlier time holds to that time; 0: none is known, so that their readers get no heartbeat. Returns in `incomplete` the workspaces
   * that are not complete yet, such as those that another writer began again and did not finish.
   */
  heartbeat(
    projectionId: string,
    asOfMs: number,
    workspaceIds: readonly string[],
    lagging?: ReadonlyMap<string, number>,
  ): Promise<WorkspacesAnew & { readonly incomplete: readonly string[] }>;
}

/** The store holds another projection than the writer expects: it was flushed, or another relay took over. */
export class ProjectionChanged extends Error {
  override name = "ProjectionChanged";
}

export type Lookup<T> =
  /** `stale`: read before the last reset or gap, and returned because the source is not usable now. */
  | { readonly status: "found"; readonly value: T; readonly stale?: true }
  | { readonly status: "absent" }
  /** `isRefused`: a record exists, but this release cannot read it. */
  | { readonly status: "unusable"; readonly reason: string; readonly isRefused?: true };

/** A record as it was last read. `value` undefined: it is gone. */
export interface KnownRecord {
  readonly kind: RecordKind;
  readonly id: string;
  readonly value: unknown;
}

/** What the projection of one workspace knows, so that another process can go on from it. */
export interface Known {
  readonly position: FeedPosition;
  /** As of the position; what was read later is newer. */
  readonly stalenessMs: number;
  /** Of which no change is known. What changes between the call and taking them out may be among them, as it was or as it is. */
  readonly records: Iterable<KnownRecord>;
}

/** What an earlier process knew, as a projection begins with it. */
export interface Restored {
  readonly position: FeedPosition;
  /** How stale the records are by now, ms. */
  readonly stalenessMs: () => number;
  readonly records: Iterable<KnownRecord & { readonly length: number }>;
}

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
  /** Forgets records at once (after own writes). Reads of them that are in flight are used once and not cached. */
  drop(refs: readonly RecordRef[]): void;
  /**
   * Forgets everything, after a transaction that changed too many records to list. Unlike after a reset of the feed, earlier data is
   * not used again, not even while the source is unusable. Reads in flight are used once and not cached.
   */
  forgetAll(): void;
  /**
   * How stale the data of a workspace may be, ms; without an argument, the maximum over all workspaces. Every change that was committed
   * longer ago has been processed. Infinity before the first heartbeat. May be too large, never too small.
   */
  stalenessMs(workspaceId?: string): number;
  /** The same over all workspaces except those that lag behind the others, and the number of lagging ones. */
  feedStaleness(): { readonly ms: number; readonly laggingWorkspaces: number };
  /** Whether the last read from the source was usable. After one that was not, the read is repeated with each heartbeat. */
  sourceState(): SourceState;
  /** How much of what was read since the start was refused, by kind. */
  refused(): Readonly<Record<RefusedKind, number>>;
  /** How many entries each cache holds, for the metrics. */
  cacheSizes(): { readonly keys: number; readonly records: number; readonly absences: number };
  /** undefined while nothing was heard of the workspace's changes, or they are not believed; always on the feed of all workspaces. */
  known(): Known | undefined;
  /** How many records that were known were forgotten so far because they changed. */
  forgotten(): number;
  /** Whether all that is known is still from an earlier process: nothing was heard of the store yet. */
  isRestored(): boolean;
  /** Calls the listener after a record was dropped because it changed, and with undefined after everything was dropped. */
  onDropped(listener: (ref: RecordRef | undefined) => void): void;
}
