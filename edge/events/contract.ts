import type { Closeable } from "../projection/contract.ts";

/** One verification, as recorded for analytics. Never the key itself. Times are Unix ms, latency is ms. */
export interface VerificationEvent {
  readonly type: "verification";
  /** Unique; makes ingesting the same event twice harmless. */
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

/** Takes events without waiting and sends them in batches (≤ 200 ms). Statistics, not a ledger: what cannot be sent is counted. */
export interface EventSink extends Closeable {
  add(event: UsageEvent): void;
  /** Sends what is waiting now. */
  flush(): Promise<void>;
  /** Events dropped since the start: the store had no room for them, or could not be reached and the buffer was full. */
  dropped(): number;
}

/** Takes events also from who has written their JSON already. */
export interface LineSink extends EventSink {
  /** `line` is one event, without a line feed at its end. */
  addLine(workspaceId: string, line: string): void;
}

/**
 * Events of one workspace, as they lay in the store. Whoever iterates gets those that are events of this workspace; `lines`
 * is for whoever can take them as a whole, which costs a tenth.
 */
export interface TakenEvents extends Iterable<UsageEvent> {
  readonly workspaceId: string;
  /** What should be the JSON of one event a line, without a line feed at the end. Nobody has looked at it yet. */
  readonly lines: string;
}

/** What lies in the stream of one workspace, not stored yet. */
export interface StreamDepth {
  readonly workspaceId: string;
  /** Each is one event or a batch of them. */
  readonly entries: number;
  /** About, as the store reckons its memory. */
  readonly bytes: number;
  /** How long the oldest entry has lain there, ms. */
  readonly ageMs: number;
}

export interface StreamsSeen {
  /** Those that have entries. */
  readonly depths: readonly StreamDepth[];
  /** Those that were no streams, and have been removed. */
  readonly setAside: readonly { readonly workspaceId: string; readonly type: string }[];
  /** Those of which the store could not say, and why. */
  readonly failed: readonly { readonly workspaceId: string; readonly error: Error }[];
}

export interface Portion {
  /** Entries that were read; 0 when there was none that no other reader holds. */
  readonly entries: number;
  /** Entries among them that were no events, or too large for any. */
  readonly unreadable: number;
}

export interface KeptBudget {
  /** That all streams together may take now. */
  readonly totalBytes: number;
  /** Entries that were removed unread, because a writer did not keep to its room. */
  readonly trimmed: number;
}

/**
 * The ingester's side: at least once, so the handler must not mind an event that it has seen before. What lies in a stream was
 * written by pods, so each call is about one workspace, and what fails for one says nothing of the others.
 */
export interface EventSource {
  /** Asks for all of them at once. Throws `EventsUnavailable`. */
  look(workspaceIds: readonly string[]): Promise<StreamsSeen>;
  /**
   * Hands over a portion of bounded size that no other reader has taken (or that a dead reader left), and acknowledges it when
   * `handle` returns. When that throws, so does this, and the portion is handed over again by the next call. Throws
   * `StreamRefused` when the store answers that this workspace's stream cannot be read, and `EventsUnavailable`.
   */
  take(workspaceId: string, handle: (events: TakenEvents) => Promise<void>): Promise<Portion>;
  /**
   * Shares out the memory that all streams together may take, `bytesMax` or what the store has for them. undefined when
   * another process does. Throws when the store cannot be reached.
   */
  keepWithin(workspaceIds: readonly string[], bytesMax: number): Promise<KeptBudget | undefined>;
  /** Leaves the readers of the streams. What was handed over and not acknowledged is another reader's to take. */
  close(): Promise<void>;
}

/** The store refuses what was asked of one workspace's stream: something else than a stream of events is there. */
export class StreamRefused extends Error {
  override name = "StreamRefused";
}

/** The store of events cannot be reached, for any workspace. */
export class EventsUnavailable extends Error {
  override name = "EventsUnavailable";
}
