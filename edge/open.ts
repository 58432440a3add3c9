import type { Counters } from "./counters/contract.ts";
import type { CreditStore } from "./credits/contract.ts";
import type { EventSource, LineSink } from "./events/contract.ts";
import type { PodReports } from "./pods/contract.ts";
import type { ChangeFeed, RecordSource, RecordWriter } from "./projection/contract.ts";

export { createMemoryEdge } from "./open-memory.ts";
export { openRedisEdge } from "./open-redis.ts";

/** Counters as a part uses them: strict ones in the shared store, local ones in process, denials remembered. */
export interface EdgeCounters extends Counters {
  /** Forgets remembered denials: for a new projection, when counters may have gone back in time. */
  forgetDenials(): void;
  /** Units admitted beyond limits by `accuracy: "local"` so far, as far as this process can tell. */
  overAdmitted(): number;
}

/** Everything that travels between the centre and the pods, over one store. */
export interface Edge {
  readonly kind: "redis" | "memory";
  readonly writer: RecordWriter;
  readonly source: RecordSource;
  readonly feed: ChangeFeed;
  /** `extraPoll`: after the time is up, one more turn of the event loop, in which a reply that is there already is read. */
  counters(options: { timeoutMs: number; extraPoll?: boolean }): EdgeCounters;
  readonly credits: CreditStore;
  readonly sink: LineSink;
  readonly events: EventSource;
  readonly pods: PodReports;
  /** Loads what pods run into a store that has lost it, for users who may run scripts and load none. Throws when it is away. */
  loadScripts(): Promise<void>;
  /** Throws when the store does not answer within a second. */
  ping(): Promise<void>;
  info(): Promise<{ evictionPolicy?: string }>;
  /** Sends what is waiting and closes every connection; counters, sink and feed end with it. */
  close(): Promise<void>;
}
