import type { WorkResult } from "../runtime/queue.ts";
import type { Pace } from "./api-key-policy/poll-pace.ts";

/*
 * Result of a planner. The verdict is one of:
 *
 *   Ready        the database matches the spec
 *   Progressing  not yet; the operator retries by itself
 *   Stalled      a person must change the manifest or make a decision
 */

/** Reasons of conditions and Events. They are never renamed, because users write alerts on them. */
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
  /** One or two sentences that tell the author of the manifest what to do. */
  readonly message: string;
}

/** Result of resolving a reference to a RatelimitNamespace: its id, or the reason why there is none yet. */
export type ResolvedNamespace = { readonly namespaceId: string } | { readonly verdict: Verdict };

/** A condition in addition to those of every object. */
export interface FurtherCondition {
  readonly type: "Accepted" | "Enforced" | "Unsupported" | "Bypassable" | "Stale" | "LimitsExceeded" | "UnknownFields";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: Reason;
  readonly message: string;
  /** The condition is abnormal while True; an Event reports when that begins and ends. */
  readonly alerts?: true;
  /** Text of the Event that is emitted when the condition gets this reason. */
  readonly note?: string;
}

export interface Plan<Action> extends WorkResult {
  /** Actions to perform, in this order; the state is read again afterwards. */
  readonly actions: readonly Action[];
  /** Status to report until all `actions` have succeeded. */
  readonly verdict: Verdict;
  /** Status fields specific to the kind. */
  readonly status: object;
  readonly conditions?: readonly FurtherCondition[];
  /** Time at which the database was read, if that was long ago. */
  readonly seenAtMs?: number;
  /** Required poll interval of the pod reports; only for policies, which are polled. */
  readonly pace?: Pace | undefined;
  /** The actions result from elapsed time, such as a rotation, and are not drift. */
  readonly isDue?: true;
  /** The object is being deleted and has no stored resources left. */
  readonly released?: true;
}

export const ready = (message: string): Verdict => ({ state: "Ready", reason: "Succeeded", message });
export const progressing = (reason: Reason, message: string): Verdict => ({ state: "Progressing", reason, message });
export const stalled = (reason: Reason, message: string): Verdict => ({ state: "Stalled", reason, message });

/** Plan of a deleted object whose cleanup is complete. */
export const released: Plan<never> = {
  actions: [],
  verdict: progressing("Progressing", "The object is being deleted."),
  status: {},
  released: true,
};

/** Performs no action while a check fails. Requeues, because a conflict may end without a notification. */
export const blocked = (verdict: Verdict, status: object): Plan<never> => ({
  actions: [],
  verdict,
  status,
  ...(verdict.reason === "Conflict" ? { requeueAfterMs: CONFLICT_REQUEUE_MS } : {}),
});

/** Returns the first failure of a list of checks, so that the list reads as the specification. */
export function firstOf<T>(
  observed: T,
  checks: ReadonlyArray<(observed: T) => Verdict | undefined>,
): Verdict | undefined {
  for (const check of checks) {
    const verdict = check(observed);
    if (verdict !== undefined) return verdict;
  }
  return undefined;
}

/** Conflicts are checked again before the next resync, because other writers, in this or another cluster, may release an object. */
export const CONFLICT_REQUEUE_MS = 30_000;

/** Checks a lasting conflict at growing intervals, up to the resync period, because a thousand such objects would cost many calls. */
export const laterWhileHeld = (requeueAfterMs: number | undefined, heldForMs: number): number | undefined =>
  requeueAfterMs === undefined ? undefined : Math.max(requeueAfterMs, heldForMs / 10);
