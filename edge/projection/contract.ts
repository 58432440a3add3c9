import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import type { NamespaceRecord, OverrideRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { Closeable } from "../closeable.ts";
import { REFERRED_KINDS, type RecordKind, type RecordRef } from "../records.ts";

/*
 * How verification data gets from Postgres to the process that decides.
 *
 *   relay ──► RecordWriter ──► (Redis or memory) ──► RecordSource ─┐
 *                    └──────► change stream ───────► ChangeStream ───┴─► Projection (cache, staleness)
 *
 * The api-server uses the same Projection over a RecordSource that reads Postgres directly.
 */

/**
 * Result of reading one record. `gone`: deleted (a tombstone). `missing`: not found, so it is unknown whether the record exists.
 * `unreadable`: the value is not a record, and must not be treated as one of the other cases.
 */
export type ReadRecord =
  /** `length`: length of the record's text, if it is known without serialization. */
  | { readonly state: "found"; readonly version: number; readonly data: unknown; readonly length?: number }
  | { readonly state: "gone" }
  | { readonly state: "missing" }
  | { readonly state: "unreadable"; readonly problem: string };

/**
 * `usable: false`: the store is unreachable or was rolled back, or the projection is incomplete and lacks a requested record, which may
 * nevertheless exist.
 */
export type ReadBatch =
  | { readonly usable: true; readonly records: readonly ReadRecord[] }
  | {
      readonly usable: false;
      readonly reason: string;
      /** Set for an incomplete projection. The found records are correct, but `missing` does not prove that a record does not exist. */
      readonly partial?: readonly ReadRecord[];
      /** Set if the projection state exists but is invalid. */
      readonly refused?: "state";
    };

/**
 * Reads records, in the order of the refs, which must all belong to one workspace. If the store is unreachable, returns `usable: false` and
 * does not throw.
 */
export interface RecordSource {
  read(refs: readonly RecordRef[]): Promise<ReadBatch>;
}

/** `central` is the global change stream for all workspaces, which api-servers follow. */
export type StreamId = { readonly workspaceId: string } | "central";

/** Kinds of data that may be rejected as invalid, because others can write to the store. */
export type RefusedKind = "state" | "record" | "entry" | "heartbeat";

export interface ChangeListener {
  /** Called when the record changed: the listener must drop its cached copy. */
  onChange(ref: RecordRef): void;
  /**
   * Called when entries were missed, a new projection began, or the store was rolled back: the listener must reset its whole cache. Until a
   * rolled-back store has a new projection, no heartbeats are reported, so that its data cannot look fresh. `forget`: the missed changes
   * will not be announced again, so the listener must no longer use earlier data, even while the store cannot be read.
   */
  onReset(reason: string, options?: { readonly forget: boolean }): void;
  /**
   * Called when everything committed before `asOfMs` (clock of the shared store) has been delivered on this stream. For each workspace in
   * `lagging`, this is only true of changes committed before the earlier time in `lagging`. The stream of one workspace has no `lagging`,
   * because its `asOfMs` concerns only that workspace.
   */
  onHeartbeat(asOfMs: number, lagging?: ReadonlyMap<string, number>): void;
  /** Called when data on the stream was rejected, after a resulting change or reset was reported. */
  onRefused?(what: RefusedKind, problem: string): void;
}

/** Position of a reader in a change stream. All entries up to and including this one have been processed. */
export interface StreamPosition {
  readonly projectionId: string;
  /** Number of the entry in its projection, counted from the beginning. */
  readonly n: number;
  /** Id of the entry in the store. */
  readonly entryId: string;
}

export interface FollowOptions {
  /**
   * Position of an earlier reader. Entries after it are delivered; if that is impossible, the listener is reset. Default: the current end
   * of the stream.
   */
  readonly from?: StreamPosition;
  /** Maximum time in ms that `follow` waits for the store before it returns and connects in the background. Default: 1 s. */
  readonly waitMs?: number;
}

export interface Following extends Closeable {
  /** Returns the last delivered position; `undefined` before the first read of the store, and while the store counts as rolled back. */
  position(): StreamPosition | undefined;
}

export interface ChangeStream {
  /** Starts to follow the stream. Entries that arrive during the call are not lost. Reconnects until closed. */
  follow(stream: StreamId, listener: ChangeListener, options?: FollowOptions): Promise<Following>;
  /**
   * Returns an estimate of the shared store's clock, Unix ms with fractions, from a monotonic clock. The estimate is never behind the
   * store's clock, but goes back if that clock was set back. Returns `undefined` while the clock is unknown.
   */
  storeNowMs(): number | undefined;
}

export interface RecordWrite {
  readonly ref: RecordRef;
  /** Content of the record, as a value or as JSON text from Postgres; `undefined` writes a tombstone. */
  readonly data: unknown;
  /** Set on a tombstone to which no record refers. Such a tombstone may expire, whatever its kind. */
  readonly isRemoved?: true;
}

/** Tombstones are kept for 24 h, so that a slow relay cannot restore a deleted record. */
export const TOMBSTONE_KEPT_MS = 24 * 60 * 60 * 1000;

/** Whether the tombstone never expires. */
export const staysForGood = ({ ref, isRemoved }: RecordWrite): boolean => REFERRED_KINDS.has(ref.kind) && !isRemoved;

/** JSON that is passed on unchanged, because parsing and serializing it would cost more than all other work on a record. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns the JSON of a record to be written; `undefined` for a tombstone. */
export function jsonOf({ data }: RecordWrite): string | undefined {
  if (data === undefined) return undefined;
  return data instanceof JsonText ? data.text : JSON.stringify(data);
}

/** State of the store when a relay takes over. The relay uses it to decide whether all data must be projected again. */
export interface StoreState {
  /** The projection in the store; `undefined` if none exists. */
  readonly projectionId: string | undefined;
  readonly complete: boolean;
  /** Number of entries in the global stream of this projection. */
  readonly head: number;
  /** Highest record version written. */
  readonly version: number;
  /** Time of the last heartbeat on the store's clock; 0 before the first heartbeat. */
  readonly asOfMs: number;
  /** Id of the server's run, which changes when the store restarts, because a restart may roll it back. */
  readonly runId: string;
}

export interface BeginOptions {
  /**
   * Whether readers must not use cached data until the projection is complete. Required if changes that they may have missed are not
   * announced again.
   */
  readonly forget?: boolean;
  /**
   * Whether readers may use a record of the previous projection, if that was complete, until the new projection has the record. This
   * applies from the first heartbeat on. Before it, changes that the store may have lost are not yet written and announced again.
   */
  readonly usePrevious?: boolean;
}

/**
 * Workspaces whose projection a call had to restart under a new id. This happens if the workspace's projection state was lost, or if its
 * part of the store rejects writes because others have written to it. The call succeeded for all other workspaces.
 */
export interface RestartedWorkspaces {
  /** Workspaces restarted in this call. For each, write all records, then call `completeWorkspace`. */
  readonly begun: readonly string[];
}

/** The store as the relay writes it. All methods throw if the store is unreachable, and can safely be repeated. */
export interface RecordWriter {
  state(): Promise<StoreState>;
  /**
   * Begins a new projection. Readers reset their caches, and until `complete` is called, the absence of a record proves nothing. If the
   * projection has already begun, adds workspaces that are not part of it yet.
   */
  begin(projectionId: string, workspaceIds: readonly string[], options?: BeginOptions): Promise<void>;
  /**
   * Writes records in the given order, so records to which others refer must come first. Never replaces a record by an older version. Then
   * announces the records on the stream of their workspace and on the global one, unless `announce` is false. Throws `ProjectionChanged` if
   * the store does not hold `projectionId`.
   */
  write(batch: {
    projectionId: string;
    version: number;
    writes: readonly RecordWrite[];
    announce?: boolean;
  }): Promise<RestartedWorkspaces>;
  /**
   * Marks the projection complete for the given workspaces, except restarted ones, which have other ids. From then on, the absence of a
   * record means that it does not exist. `version` is the highest version that was written without being announced.
   */
  complete(projectionId: string, workspaceIds: readonly string[], version?: number): Promise<void>;
  /** Marks one restarted workspace complete. */
  completeWorkspace(workspaceId: string): Promise<void>;
  /** Returns the store's time, Unix ms. Must be read before the outbox is scanned. */
  nowMs(): Promise<number>;
  /**
   * Announces to readers that everything committed before `asOfMs` has been delivered. `lagging` maps each workspace for which this is true
   * only of an earlier time to that time. If the time is unknown, it is 0, and the readers of the workspace get no heartbeat. Returns in
   * `incomplete` the workspaces that are not complete yet, for example because another writer did not finish their restart.
   */
  heartbeat(
    projectionId: string,
    asOfMs: number,
    workspaceIds: readonly string[],
    lagging?: ReadonlyMap<string, number>,
  ): Promise<RestartedWorkspaces & { readonly incomplete: readonly string[] }>;
}

/** Error for a store that contains another projection than expected, because it was flushed or another relay took over. */
export class ProjectionChanged extends Error {
  override name = "ProjectionChanged";
}

export type Lookup<T> =
  /** `stale`: the record was read before the last reset or gap. It is returned because the source is not usable now. */
  | { readonly status: "found"; readonly value: T; readonly stale?: true }
  | { readonly status: "absent" }
  /** `isRefused`: a record exists, but this version cannot read it. */
  | { readonly status: "unusable"; readonly reason: string; readonly isRefused?: true };

/** A cached record. `value` is `undefined` for a deleted record. */
export interface CachedEntry {
  readonly kind: RecordKind;
  readonly id: string;
  readonly value: unknown;
}

/** Cached state of one workspace's projection. Another process can continue from it. */
export interface Known {
  readonly position: StreamPosition;
  /** Staleness of the data at the position. Records that were read later are newer. */
  readonly stalenessMs: number;
  /** Cached records that are not invalidated. A record that changes during iteration may be returned in its old or its new state. */
  readonly records: Iterable<CachedEntry>;
}

/** State that an earlier process saved, from which a projection starts. */
export interface Restored {
  readonly position: StreamPosition;
  /** Returns the current staleness of the restored records, in ms. */
  readonly stalenessMs: () => number;
  readonly records: Iterable<CachedEntry & { readonly length: number }>;
}

export type SourceState = { readonly usable: true } | { readonly usable: false; readonly reason: string };

/** A result that is returned synchronously if it is cached. On the hot path, a promise would cost as much as the lookup. */
export type MaybePromise<T> = T | Promise<T>;

/** Returns the results in order: synchronously if none of them is a promise. */
export const allOf = <T>(results: readonly MaybePromise<T>[]): MaybePromise<T[]> =>
  results.some((result) => result instanceof Promise) ? Promise.all(results) : (results as T[]);

/** The cached reader on which decisions are based. It keeps track of how fresh its data is. Each process has one. */
export interface Projection extends Closeable {
  findKey(workspaceId: string, hash: string): MaybePromise<Lookup<KeyView>>;
  findPolicy(workspaceId: string, policyId: string): MaybePromise<Lookup<PolicyRecord>>;
  /** Returns the active override for an identifier: the exact one, otherwise the best matching pattern (api-v2.md section 9.3). */
  findOverride(workspaceId: string, namespaceId: string, identifier: string): MaybePromise<Lookup<OverrideRecord>>;
  findNamespace(workspaceId: string, namespaceId: string): MaybePromise<Lookup<NamespaceRecord>>;
  findNamespaceByName(workspaceId: string, name: string): MaybePromise<Lookup<NamespaceRecord>>;
  /**
   * Drops cached records immediately, after this process has changed them. Reads of these records that are in flight are used by their
   * callers but not cached.
   */
  drop(refs: readonly RecordRef[]): void;
  /**
   * Drops the complete cache, after a transaction that changed too many records to list. Unlike after a reset of the stream, the dropped
   * data is never used again, even while the source is unusable. Reads in flight are used by their callers but not cached.
   */
  forgetAll(): void;
  /**
   * Returns how stale the data of a workspace may be, in ms; without an argument, the maximum over all workspaces. Every change that was
   * committed longer ago has been processed, so the result is an upper bound on the actual staleness. It is `Infinity` before the first
   * heartbeat.
   */
  stalenessMs(workspaceId?: string): number;
  /** Returns the maximum staleness of the workspaces that do not lag, and the number of lagging workspaces. */
  streamStaleness(): { readonly ms: number; readonly laggingWorkspaces: number };
  /** Returns whether the last read from the source was usable. After an unusable read, the read is repeated at each heartbeat. */
  sourceState(): SourceState;
  /** Returns the number of values rejected as invalid since the start, by kind. */
  refused(): Readonly<Record<RefusedKind, number>>;
  /** Returns the number of entries in each cache, for the metrics. */
  cacheSizes(): { readonly keys: number; readonly records: number; readonly absences: number };
  /**
   * Returns the state to save. Returns `undefined` on the global stream, and for a workspace until an entry or a heartbeat has arrived and
   * while the store counts as rolled back.
   */
  known(): Known | undefined;
  /** Returns the number of cached records dropped so far because of changes. */
  forgotten(): number;
  /** Returns whether all data still comes from an earlier process, because the store has not responded yet. */
  isRestored(): boolean;
  /** Calls the listener after a changed record was dropped, and with `undefined` after the complete cache was dropped. */
  onDropped(listener: (ref: RecordRef | undefined) => void): void;
}
