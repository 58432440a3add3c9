import type { Consumed, LimitCharge, LimitOutcome } from "../core/charges.ts";
import type { Counters } from "./counters/contract.ts";
import type { CreditStore } from "./credits/contract.ts";
import type { EventSource, LineSink } from "./events/contract.ts";
import type { GateUsers } from "./gate-users/contract.ts";
import type { PodReports } from "./pods/contract.ts";
import type { ChangeStream, RecordSource, RecordWriter } from "./projection/contract.ts";
import type { StoreDescription } from "./redis/describe.ts";

/** `async`: the limit is decided by each process; `outage`: the shared counters were unreachable. */
export type OverAdmissionCause = "async" | "outage";

export interface OverAdmissionTotal {
  /** Units beyond limits that this process has admitted since it started. */
  readonly units: number;
  /** Largest amount beyond a limit that was admitted, as a fraction of the limit. */
  readonly largestShare: number;
  /** Time at which a limit was last exceeded, Unix ms of the store's clock; `undefined` if no limit was exceeded. */
  readonly lastMs: number | undefined;
}

/** Counters for the components: strict ones in the shared store, local ones in this process, and a cache of denials. */
export interface EdgeCounters extends Counters {
  /**
   * Returns what `consume` would return, but consumes no units. Evaluates the limits in the shared store. A limit that would pass reports
   * the remaining units without subtracting the cost. Throws `CountersUnavailable`.
   */
  peek(limits: readonly LimitCharge[]): Promise<Consumed>;
  /**
   * Decides a charge with `accuracy: "local"` as `consume` would, without consuming units. Does not wait for the store: uses the other
   * processes' totals as of the last sync, and requests the next sync.
   */
  check(charge: LimitCharge): LimitOutcome;
  /** Drops cached denials. Called when a new projection begins, because the store may have rolled back the counters. */
  forgetDenials(): void;
  /** Records charges that were admitted without the store and returns immediately. The charges are added to the store once it is back. */
  addLater(admitted: readonly LimitCharge[], nowMs: number): void;
  /**
   * Returns by how much limits have been exceeded so far, as far as this process can measure it: for limits with `accuracy: "local"`, and
   * for amounts that were added after an outage.
   */
  overAdmissions(): Readonly<Record<OverAdmissionCause, OverAdmissionTotal>>;
}

/** Settings and state of the shared store. */
export interface StoreInfo {
  readonly evictionPolicy?: string;
  /** Connections as a fraction of the server's limit, from 0 to 1; with several servers, the highest fraction. */
  readonly connectionRatio?: number;
}

/** All data that travels between the control plane and the gates, over one store. */
export interface Edge {
  readonly kind: "redis" | "memory";
  readonly writer: RecordWriter;
  readonly source: RecordSource;
  readonly stream: ChangeStream;
  counters(options: { timeoutMs: number }): EdgeCounters;
  readonly credits: CreditStore;
  readonly sink: LineSink;
  readonly events: EventSource;
  /**
   * Returns another reader of the same streams with batches of its own, so that two batches can be stored concurrently. The edge closes the
   * reader.
   */
  anotherReader(): EventSource;
  readonly pods: PodReports;
  /** Redis users of gates; `undefined` if the store has no users. */
  readonly gateUsers: GateUsers | undefined;
  /**
   * Loads the gate scripts into a store that has lost them. Gates cannot do this: a gate's Redis user may run scripts but not load them.
   * Throws if the store is unreachable.
   */
  loadScripts(): Promise<void>;
  /** Throws if the store does not respond within 1 s. */
  ping(): Promise<void>;
  info(): Promise<StoreInfo>;
  /** Returns a summary for operators. Throws if the store is unreachable. */
  describe(): Promise<StoreDescription>;
  /** Sends waiting data and closes every connection, including counters, sink and change stream. */
  close(): Promise<void>;
}
