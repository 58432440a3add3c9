import type { Pool } from "pg";
import type { Logger } from "pino";
import type { AnalyticsStore } from "../../analytics/contract.ts";
import type { QueryMetrics } from "../../analytics/query-metrics.ts";
import type { RolesOfGroups } from "../../core/sessions/assignments.ts";
import type { Counters } from "../../edge/counters/contract.ts";
import type { Edge } from "../../edge/edge.ts";
import type { EventSource, LineSink } from "../../edge/events/contract.ts";
import type { LogThrottle } from "../../edge/log-throttle.ts";
import type { PodReports } from "../../edge/pods/contract.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { CreditService } from "../credits/service.ts";
import type { Transacting } from "../db/transaction.ts";
import type { KeyVault } from "../keys/key-vault.ts";

/* Dependencies of the use cases, grouped by topic. Each use case takes the smallest group that has all members it needs. */

/** Dependencies of functions that read the database. */
export interface ReadDeps {
  readonly db: Pool;
}

/** Dependencies of functions that change data: transactions, audit rows and new ids. */
export interface ChangeDeps extends Transacting {
  /** Returns wall-clock time, Unix ms. */
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
}

/** Dependencies for logging failures that every request causes during an outage (`logThrottled`). */
export interface LogDeps {
  readonly log: Logger;
  readonly throttle: LogThrottle;
}

/** Dependencies of functions that change keys with credits. */
export interface CreditsDeps extends ChangeDeps {
  readonly credits: CreditService;
}

/** Dependencies for keys whose secret can be returned. */
export interface VaultDeps {
  /** Key vault; `undefined` without encryption keys, in which case no key is recoverable. */
  readonly keyVault: KeyVault | undefined;
}

/** Dependencies for limits, quotas and credits. */
export interface CountingDeps extends LogDeps {
  readonly projection: Projection;
  readonly counters: Counters;
  readonly credits: CreditService;
  readonly nowMs: () => number;
}

/** Dependencies of rate-limit calls, which create their namespace on first use. */
export interface LimitDeps extends ChangeDeps, CountingDeps {
  readonly projection: Projection;
  readonly events: LineSink;
}

/** Dependencies of functions that record verification events. */
export interface VerificationDeps {
  readonly events: LineSink;
  /** JSON of the members that all verification events of this process share, as `deciderJson` returns it. */
  readonly decidedBy: string;
  readonly nowMs: () => number;
}

/** Dependencies of usage queries. */
export interface UsageDeps extends CountingDeps, ReadDeps {
  readonly analytics: Pick<
    AnalyticsStore,
    "kind" | "query" | "countVerifications" | "countLatencies" | "uncountedForMs"
  >;
  readonly queryMetrics: QueryMetrics;
  /** Reports the number of events that are pending in the streams. */
  readonly eventStreams: Pick<EventSource, "measure">;
}

/** Dependencies of functions that manage the sessions of people. */
export interface PeopleDeps extends ChangeDeps {
  /** Maximum idle time of a session, in ms. */
  readonly sessionIdleMs: number;
  /** Roles that the active roles file gives to groups. */
  readonly rolesOfGroups: RolesOfGroups;
}

/** Dependencies of functions that read the reports from pods. */
export interface PodDeps extends LogDeps {
  readonly pods: PodReports;
}

/** Dependencies of the functions that describe the installation. */
export interface InstallationDeps extends ReadDeps {
  readonly projection: Projection;
  readonly analytics: Pick<AnalyticsStore, "kind">;
  readonly pods: PodReports;
  readonly installation: InstallationDetails;
  readonly nowMs: () => number;
}

/** Details about the installation that are known only to the code that starts the process. */
export interface InstallationDetails {
  readonly edge: Pick<Edge, "kind" | "describe" | "writer" | "source" | "events">;
  readonly isRelaying: () => boolean;
  /** Returns the degradations, worst first, as in `/readyz?verbose`. */
  readonly degradations: () => readonly { readonly reason: string; readonly means: string }[];
  /** Ids of the encryption keys of this process; the first one encrypts. */
  readonly encryptionKeyIds: readonly string[];
  readonly retentionDays: { readonly audit: number; readonly deleted: number };
  readonly region: string;
  /** Returns the certificate of the API, PEM. */
  readonly certificate: () => string | undefined;
  /** Returns how far the roll-up is behind; `undefined` if the analytics store has no roll-up. */
  readonly rollUpDepth: (() => Promise<{ readonly events: number; readonly ageMs: number }>) | undefined;
  readonly usageProblem: (() => Promise<string | undefined>) | undefined;
  readonly startedAt: number;
}
