import type { Closeable } from "../closeable.ts";

/** One verification, recorded for analytics. It never contains the key itself. Times are in Unix ms, and latency is in ms. */
export interface VerificationEvent {
  readonly type: "verification";
  /** Unique id, so that storing an event twice is harmless. */
  readonly id: string;
  readonly requestId: string;
  readonly timeMs: number;
  readonly workspaceId: string;
  readonly keySpaceId: string;
  readonly apiId: string;
  readonly keyId: string;
  readonly identityId?: string | undefined;
  readonly externalId?: string | undefined;
  /** Code of the verification. */
  readonly outcome: string;
  readonly tags: readonly string[];
  readonly region: string;
  readonly source: "api" | "sidecar";
  /** Policy of the gate that decided; `undefined` for the API and for gates that do not report it. */
  readonly appId?: string | undefined;
  readonly spentCredits: number;
  readonly latencyMs: number;
}

/** One entry of ratelimit.limit or multiLimit. */
export interface RatelimitEvent {
  readonly type: "ratelimit";
  readonly id: string;
  readonly requestId: string;
  readonly timeMs: number;
  readonly workspaceId: string;
  readonly namespaceId: string;
  readonly identifier: string;
  readonly passed: boolean;
  readonly latencyMs: number;
  readonly overrideId?: string | undefined;
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly cost: number;
}

export type UsageEvent = VerificationEvent | RatelimitEvent;

/**
 * Accepts events without blocking and sends them in batches within 200 ms. Events are statistics: events that cannot be sent are dropped
 * and counted.
 */
export interface EventSink extends Closeable {
  add(event: UsageEvent): void;
  flush(): Promise<void>;
  /** Number of events dropped since the start, because the store was over quota, or was unreachable while the buffer was full. */
  dropped(): number;
}

/** An event sink that also accepts events that are already serialized as JSON. */
export interface LineSink extends EventSink {
  /** `line` is one event, without a trailing line feed. */
  addLine(workspaceId: string, line: string): void;
}

/**
 * Stored events of one workspace. Iterating yields only its valid events. A consumer that does not need separate events uses `lines`, which
 * costs a tenth of parsing each event.
 */
export interface TakenEvents extends Iterable<UsageEvent> {
  readonly workspaceId: string;
  /** Id of the batch. It is equal for the same events in the same order, so a batch that is delivered again keeps its id. */
  readonly batchId: string;
  /** Events as JSON, one per line, without a trailing line feed. The lines are not validated yet. */
  readonly lines: string;
}

/** Amount of data in one workspace's stream that is not stored in the database yet. */
export interface StreamDepth {
  readonly workspaceId: string;
  /** Number of entries; each is one event or a batch of events. */
  readonly entries: number;
  /** Approximate memory of the stream in the store, bytes. */
  readonly bytes: number;
  /** Remaining quota of the workspace in bytes; negative if the quota has become smaller than the stream. */
  readonly capacityBytes: number;
  /** Age of the oldest entry, ms. */
  readonly ageMs: number;
}

export interface StreamsSeen {
  /** Streams with entries, and their depths. */
  readonly depths: readonly StreamDepth[];
  /** Removed keys that were not streams. */
  readonly setAside: readonly { readonly workspaceId: string; readonly type: string }[];
  /** Streams that the store could not read, with the error. */
  readonly failed: readonly { readonly workspaceId: string; readonly error: Error }[];
}

export interface BatchLimits {
  /** Size in bytes at which a batch ends. The batch includes the entry that reaches this size. Default: 512 KiB. */
  readonly bytesEnough?: number | undefined;
}

export interface Batch {
  /** Number of entries read; 0 if the stream is empty, or if other readers are processing all of its entries. */
  readonly entries: number;
  /** Number of entries in the batch that were not events, or that were too large. */
  readonly unreadable: number;
}

export interface KeptBudget {
  /** Bytes that all streams together may use now. */
  readonly totalBytes: number;
  /** Number of entries removed unread because a writer ignored its quota. */
  readonly trimmed: number;
}

/**
 * Event streams for the ingester. Delivery is at least once, so the handler must accept duplicate events. Gates write the streams, so each
 * call concerns one workspace, and a failure for one workspace does not affect the others.
 */
export interface EventSource {
  /** Inspects all streams in one call. Throws `EventsUnavailable`. */
  measure(workspaceIds: readonly string[]): Promise<StreamsSeen>;
  /**
   * Passes a batch of limited size, which no other live reader is processing, to `handle`, and acknowledges it when `handle` returns. If
   * `handle` throws, `take` throws the same error. The next call then returns exactly the same batch, even from another reader that takes
   * over after this one has died. Throws `StreamRejected` if this workspace's stream cannot be read, and `EventsUnavailable` if the store
   * is unreachable.
   */
  take(workspaceId: string, handle: (events: TakenEvents) => Promise<void>, bounds?: BatchLimits): Promise<Batch>;
  /**
   * Distributes the memory for all streams: `bytesMax`, or less if the store has less memory for them. Returns `undefined` if another
   * process distributes it. Throws if the store is unreachable.
   */
  keepWithin(workspaceIds: readonly string[], bytesMax: number): Promise<KeptBudget | undefined>;
  /** Leaves the consumer groups. Another reader takes over unacknowledged batches. */
  close(): Promise<void>;
}

/** Error for a command that the store rejects because the key of one workspace is not a stream of events. */
export class StreamRejected extends Error {
  override name = "StreamRejected";
}

/** Error for an event store that is unreachable for all workspaces. */
export class EventsUnavailable extends Error {
  override name = "EventsUnavailable";
}
