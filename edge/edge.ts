import type { Consumed, LimitCharge } from "../core/charges.ts";
import type { Counters } from "./counters/contract.ts";
import type { CreditStore } from "./credits/contract.ts";
import type { EventSource, LineSink } from "./events/contract.ts";
import type { GateUsers } from "./gate-users/contract.ts";
import type { PodReports } from "./pods/contract.ts";
import type { ChangeFeed, RecordSource, RecordWriter } from "./projection/contract.ts";
import type { StoreDescription } from "./redis/describe.ts";

/** `async`: the limit is decided in each process; `outage`: the shared counters were away. */
export type OvershootCause = "async" | "outage";

export interface Overshot {
  /** Since the start of the process. */
  readonly units: number;
  /** By how much a limit was exceeded at most, as a part of the limit: 0.5 is one and a half times the limit. */
  readonly largestShare: number;
  /** When it was last found out, by the store's clock, Unix ms; undefined for never. */
  readonly lastMs: number | undefined;
}

/** Counters as each part uses them: strict ones in the shared store, local ones in the process, refusals cached. */
export interface EdgeCounters extends Counters {
  /**
   * What `consume` would answer: decides the limits in the shared store and consumes nothing. A limit that would pass reports what
   * remains without the cost. Throws `CountersUnavailable`.
   */
  peek(limits: readonly LimitCharge[]): Promise<Consumed>;
  /** Forgets cached refusals: for a new projection, when counters may have gone back in time. */
  forgetDenials(): void;
  /** These charges were admitted without the store. They are added to it once it is back; does not wait for that. */
  addLater(admitted: readonly LimitCharge[], nowMs: number): void;
  /** How far limits were overshot so far, as far as this process can see: those with `accuracy: "local"`, and what was added later. */
  overshoots(): Readonly<Record<OvershootCause, Overshot>>;
}

/** Everything that travels between the centre and the pods, over one store. */
export interface StoreInfo {
  readonly evictionPolicy?: string;
  /** Connections as a part of the server's limit, from 0 to 1; of several servers that of the fullest. */
  readonly connectionRatio?: number;
}

export interface Edge {
  readonly kind: "redis" | "memory";
  readonly writer: RecordWriter;
  readonly source: RecordSource;
  readonly feed: ChangeFeed;
  /** `extraPoll`: after the timeout, one more turn of the event loop reads a reply that has already arrived. */
  counters(options: { timeoutMs: number; extraPoll?: boolean }): EdgeCounters;
  readonly credits: CreditStore;
  readonly sink: LineSink;
  readonly events: EventSource;
  /** Another reader of the same streams, with portions of its own, so that two can be stored at once. Closed with the edge. */
  anotherReader(): EventSource;
  readonly pods: PodReports;
  /** undefined where the store has no users. */
  readonly gateUsers: GateUsers | undefined;
  /**
   * Loads the scripts of pods into a store that has lost them, because a pod's user may run scripts but not load them. Throws when the
   * store is unreachable.
   */
  loadScripts(): Promise<void>;
  /** Throws when the store does not answer within a second. */
  ping(): Promise<void>;
  info(): Promise<StoreInfo>;
  /** For people. Throws when the store is unreachable. */
  describe(): Promise<StoreDescription>;
  /** Sends what is waiting and closes every connection; counters, sink and feed are closed too. */
  close(): Promise<void>;
}
