import type { WorkResult } from "../runtime/queue.ts";
import type { Pace } from "./api-key-policy/poll-pace.ts";

/*
 * Result of a reconcile. The verdict is one of:
 *
 *   Ready        the database matches the spec
 *   Progressing  the database does not match the spec yet; the operator retries
 *   Stalled      a person must change the manifest or make a decision
 */

/** Reasons of conditions and Events. They must never be renamed, because users' alerts refer to them. */
export type Reason =
  | "Succeeded"
  | "Progressing"
  | "ProgressingWithRetry"
  | "DependencyNotReady"
  | "ApiUnavailable"
  | "InvalidSpec"
  | "PermissionQueryInvalid"
  | "Conflict"
  | "NotAllowed"
  | "WorkspaceNotFound"
  | "WorkspaceChanged"
  | "HasKeys"
  | "DeleteProtected"
  | "SecretNotOwned"
  | "Forbidden"
  | "Expired"
  | "NoPods"
  | "ReportsUnavailable"
  | "DataStale"
  | "CountersUnavailable"
  | "UnsupportedFormat"
  | "NewerSchema"
  | "UnguardedPods"
  | "PodsOutdated"
  | "PodsSilent"
  | "ServicePastGate"
  | "PodsUnavailable"
  | "NetworkPolicyDisabled"
  | "NetworkPoliciesUnavailable"
  | "ConflictingNetworkPolicy"
  | "PodsNotCovered"
  | "InterceptionDisabled"
  | "Redirected"
  | "SelectorMissing"
  | "NotSupported";

export interface Verdict {
  readonly state: "Ready" | "Progressing" | "Stalled";
  readonly reason: Reason;
  /** Message in one or two sentences that tells the author of the manifest what to do. */
  readonly message: string;
}

/** A condition in addition to those that every object has. */
export interface FurtherCondition {
  readonly type: "Accepted" | "Enforced" | "Unsupported" | "Bypassable" | "Stale" | "LimitsExceeded" | "UnknownFields";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: Reason;
  readonly message: string;
  /** Whether True is the abnormal status of the condition. If so, Events report when the condition becomes True or False. */
  readonly alerts?: true;
  /** Text of the Event that is emitted when the condition gets this reason. */
  readonly note?: string;
}

/** Result of a reconcile, from which the status and the Events follow. */
export interface Result extends WorkResult {
  readonly verdict: Verdict;
  /** Status fields specific to the kind. */
  readonly status: object;
  readonly conditions?: readonly FurtherCondition[];
  /** Time at which the database was read, if the state comes from a cache. */
  readonly seenAtMs?: number;
  /** Required poll interval of the pod reports; only set for policies, because only policies are polled. */
  readonly pace?: Pace | undefined;
  /** Whether the object is being deleted and owns no stored resource any more. */
  readonly released?: true;
  /** What another writer had changed, for the Event. */
  readonly drift?: string | undefined;
  /** Digest of the stored object (drift/synced-objects.ts). */
  readonly digest?: string | undefined;
}

export const ready = (message: string): Verdict => ({ state: "Ready", reason: "Succeeded", message });
export const progressing = (reason: Reason, message: string): Verdict => ({ state: "Progressing", reason, message });
export const stalled = (reason: Reason, message: string): Verdict => ({ state: "Stalled", reason, message });

/** Result for a deleted object whose cleanup is complete. */
export const released: Result = {
  verdict: progressing("Progressing", "The object is being deleted."),
  status: {},
  released: true,
};

/** Returns the result of a failed check. The object is requeued, because the operator may not be notified when the conflict ends. */
export const blocked = (verdict: Verdict, status: object): Result => ({
  verdict,
  status,
  ...(verdict.reason === "Conflict" ? { requeueAfterMs: CONFLICT_REQUEUE_MS } : {}),
});

/**
 * Requeue interval of an object with a conflict. It is shorter than the resync period, because a writer in this or another cluster may
 * release the resource at any time.
 */
export const CONFLICT_REQUEUE_MS = 30_000;

/**
 * Returns a requeue interval that grows with the age of a conflict, up to the resync period, because a thousand objects with conflicts
 * would otherwise cause many calls.
 */
export const laterWhileHeld = (requeueAfterMs: number | undefined, heldForMs: number): number | undefined =>
  requeueAfterMs === undefined ? undefined : Math.max(requeueAfterMs, heldForMs / 10);
