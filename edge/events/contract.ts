import type { Closeable } from "../closeable.ts";

/** One verification, recorded for analytics. Never contains the key itself. Times are Unix ms, latency is ms. */
export interface VerificationEvent {
  readonly type: "verification";
  /** Unique, so that storing the same event twice does no harm. */
  readonly id: string;
  readonly requestId: string;
  readonly timeMs: number;
  readonly workspaceId: string;
  readonly keySpaceId: string;
  readonly apiId: string;
  readonly keyId: string;
  readonly identityId?: string | undefined;
  readonly externalId?: string | undefined;
  /** The code of the verification. */
  readonly outcome: string;
  readonly tags: readonly string[];
  readonly region: string;
  readonly source: "api" | "sidecar";
  /** Of the policy whose gate decided. The API has none, and sidecars of the release before do not say it. */
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
 * Accepts events without waiting and sends them in batches (≤ 200 ms). Events are statistics: events that cannot be sent are dropped
 * and counted.
 */
export interface EventSink extends Closeable {
  add(event: UsageEvent): void;
  /** Sends what is waiting now. */
  flush(): Promise<void>;
  /** Events dropped since the start, because the store had no room, or was unreachable while the buffer was full. */
  dropped(): number;
}

/** Also accepts events that are already serialized as JSON. */
export interface LineSink extends EventSink {
  /** `line` is one event, without a line feed at its end. */
  addLine(workspaceId: string, line: string): void;
}

/**
 * Events of one workspace, as stored. Iterating returns the valid events of this workspace only. `lines` is for a consumer that
 * handles them as a whole, which costs a tenth of parsing each.
 */
export interface TakenEvents extends Iterable<UsageEvent> {
  readonly workspaceId: string;
  /** The same for the same events in the same order: a portion that is delivered again has the id that it had. */
  readonly portionId: string;
  /** Expected to be the JSON of one event per line, without a line feed at the end. Not validated yet. */
  readonly lines: string;
}

/** The content of one workspace's stream that is not stored yet. */
export interface StreamDepth {
  readonly workspaceId: string;
  /** Each is one event or a batch of them. */
  readonly entries: number;
  /** Approximate, as the store counts its memory. */
  readonly bytes: number;
  /** Age of the oldest entry, ms. */
  readonly ageMs: number;
}

export interface StreamsSeen {
  /** Streams that have entries. */
  readonly depths: readonly StreamDepth[];
  /** Keys that were not streams and have been removed. */
  readonly setAside: readonly { readonly workspaceId: string; readonly type: string }[];
  /** Streams that the store could not read, and why. */
  readonly failed: readonly { readonly workspaceId: string; readonly error: Error }[];
}

export interface PortionBounds {
  /** A portion ends with the entry that reaches this size. Half a megabyte when left out. */
  readonly bytesEnough?: number | undefined;
}

export interface Portion {
  /** Entries that were read; 0 when there was none, or other readers hold them all. */
  readonly entries: number;
  /** Entries among them that were not events, or were too large. */
  readonly unreadable: number;
}

export interface KeptBudget {
  /** Bytes that all streams together may use now. */
  readonly totalBytes: number;
  /** Entries that were removed unread, because a writer ignored its room. */
  readonly trimmed: number;
}

/**
 * The ingester's side. Delivery is at least once, so the handler must accept an event that it has seen before. Pods write the
 * streams, so each call is about one workspace, and a failure for one workspace does not affect the others.
 */
export interface EventSource {
  /** Inspects all of them in one call. Throws `EventsUnavailable`. */
  look(workspaceIds: readonly string[]): Promise<StreamsSeen>;
  /**
   * Passes a portion of bounded size to `handle`, which no other reader has taken (or which a dead reader left), and acknowledges it
   * when `handle` returns. When `handle` throws, `take` throws the same, and the next call returns the portion again: exactly that
   * one, also when a dead reader's is taken over by another one. Throws `StreamRefused` when the store answers that this workspace's
   * stream cannot be read, and `EventsUnavailable`.
   */
  take(workspaceId: string, handle: (events: TakenEvents) => Promise<void>, bounds?: PortionBounds): Promise<Portion>;
  /**
   * Shares out the memory for all streams: `bytesMax`, or less if the store has less for them. Returns undefined when another process
   * does so. Throws when the store is unreachable.
   */
  keepWithin(workspaceIds: readonly string[], bytesMax: number): Promise<KeptBudget | undefined>;
  /** Leaves the consumer groups. Another reader takes over portions that were not acknowledged. */
  close(): Promise<void>;
}

/** The store refuses a command on one workspace's stream, because the key holds something other than a stream of events. */
export class StreamRefused extends Error {
  override name = "StreamRefused";
}

/** The store of events is unreachable, for all workspaces. */
export class EventsUnavailable extends Error {
  override name = "EventsUnavailable";
}
