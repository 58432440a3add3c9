import type { Pool } from "pg";
import type { Logger } from "pino";
import type { Counters } from "../edge/counters/contract.ts";
import type { EdgeCounters } from "../edge/edge.ts";
import type { EventSource, LineSink } from "../edge/events/contract.ts";
import type { PodReports } from "../edge/pods/contract.ts";
import type { Projection } from "../edge/projection/contract.ts";
import type { Rarely } from "../edge/rarely.ts";
import type { AnalyticsStore } from "./analytics/contract.ts";
import type { QueryMetrics } from "./analytics/query-metrics.ts";
import type { CreditService } from "./credits/service.ts";
import type { InstallationParts } from "./installation-parts.ts";
import type { KeyHomes } from "./key-homes.ts";
import type { KeyVault } from "./key-vault.ts";
import type { RootKeyUses } from "./root-key-uses.ts";

export type { InstallationParts };

/** The dependencies of the handlers. Built once, by `start` or by a test. */
export interface Deps {
  readonly db: Pool;
  readonly projection: Projection;
  readonly keyHomes: KeyHomes;
  /** Notifies the relay, in whichever process it runs, of new marks. Returns at once. */
  readonly wakeRelay: () => void;
  readonly counters: Counters;
  /** Decides limits and counts nothing, for `admin.explainVerification`. */
  readonly peekLimits: EdgeCounters["peek"];
  readonly credits: CreditService;
  readonly events: LineSink;
  /** What waits in the streams of events. */
  readonly eventStreams: Pick<EventSource, "look">;
  readonly pods: PodReports;
  /** What is asked about usage. */
  readonly analytics: Pick<
    AnalyticsStore,
    "kind" | "query" | "countVerifications" | "countLatencies" | "uncountedForMs"
  >;
  readonly queryMetrics: QueryMetrics;
  /** Which permissions root keys are asked for. */
  readonly rootKeyUses: RootKeyUses;
  /** What only the process that put the parts together knows of them, for `admin.getInstallation`. */
  readonly installation: InstallationParts;
  /** undefined without encryption keys: then no key is recoverable. */
  readonly keyVault: KeyVault | undefined;
  readonly log: Logger;
  /** For failures that occur with every request of an outage: `noteRarely`. */
  readonly rarely: Rarely;
  /** The wall clock, Unix ms. */
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
  /** The URL before `/errors/<kind>` in `error.type`. */
  readonly docsUrl: string;
  /** `deciderJson` of this process: the members that all events of its verifications share. */
  readonly decidedBy: string;
  /** True while a workspace's changes take longer to reach the pods than the promised bound; responses to changes then say so. */
  readonly propagationDelayed: (workspaceId: string) => boolean;
}
