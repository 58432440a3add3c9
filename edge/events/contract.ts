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
  /** Events dropped since the start because the buffer was full or the store could not be reached. */
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

/** The ingester's side: at least once, so the handler must not mind an event that it has seen before. */
export interface EventSource {
  /**
   * Reads up to `max` entries that nobody else has taken (or that a dead reader left), hands them over by workspace, and
   * acknowledges when `handle` returns. Gives how many.
   */
  take(workspaceIds: readonly string[], max: number, handle: (events: TakenEvents) => Promise<void>): Promise<number>;
}
