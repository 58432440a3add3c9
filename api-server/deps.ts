import type { Pool } from "pg";
import type { Logger } from "pino";
import type { AnalyticsStore } from "../analytics/contract.ts";
import type { QueryMetrics } from "../analytics/query-metrics.ts";
import type { Counters } from "../edge/counters/contract.ts";
import type { EdgeCounters } from "../edge/edge.ts";
import type { EventSource, LineSink } from "../edge/events/contract.ts";
import type { LogThrottle } from "../edge/log-throttle.ts";
import type { PodReports } from "../edge/pods/contract.ts";
import type { Projection } from "../edge/projection/contract.ts";
import type { CreditService } from "./credits/service.ts";
import type { InstallationDeps } from "./installation-parts.ts";
import type { KeyOwners } from "./keys/key-owners.ts";
import type { KeyVault } from "./keys/key-vault.ts";
import type { RootKeyUsage } from "./keys/root-key-usage.ts";

export type { InstallationDeps };

/** Dependencies of the handlers. `start` or a test builds them once. */
export interface Deps {
  readonly db: Pool;
  readonly projection: Projection;
  readonly keyOwners: KeyOwners;
  /** Notifies the relay, in whichever process it runs, of new outbox entries. Returns immediately. */
  readonly wakeRelay: () => void;
  readonly counters: Counters;
  /** Evaluates limits without counting, for `admin.explainVerification`. */
  readonly peekLimits: EdgeCounters["peek"];
  readonly credits: CreditService;
  readonly events: LineSink;
  /** Reports the events that are pending in the streams. */
  readonly eventStreams: Pick<EventSource, "look">;
  readonly pods: PodReports;
  /** Runs usage queries. */
  readonly analytics: Pick<
    AnalyticsStore,
    "kind" | "query" | "countVerifications" | "countLatencies" | "uncountedForMs"
  >;
  readonly queryMetrics: QueryMetrics;
  /** Records which permissions root keys use. */
  readonly rootKeyUsage: RootKeyUsage;
  /** Details for `admin.getInstallation` that only `start` knows. */
  readonly installation: InstallationDeps;
  /** `undefined` without encryption keys: then no key is recoverable. */
  readonly keyVault: KeyVault | undefined;
  readonly log: Logger;
  /** Log throttle for failures that occur with every request of an outage (`logThrottled`). */
  readonly throttle: LogThrottle;
  /** Returns wall-clock time, Unix ms. */
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
  /** URL prefix of `error.type`, before `/errors/<kind>`. */
  readonly docsUrl: string;
  /** `deciderJson` of this process: members that all its verification events share. */
  readonly decidedBy: string;
  /**
   * Whether changes of the workspace currently take longer to reach the pods than `PROPAGATION_BOUND_MS`; responses to changes then say so.
   */
  readonly propagationDelayed: (workspaceId: string) => boolean;
}
