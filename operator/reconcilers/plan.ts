import type { WorkResult } from "../runtime/queue.ts";
import type { Pace } from "./api-key-policy/poll-pace.ts";

/*
 * The conclusion of a planner. The verdict is one of:
 *
 *   Ready        the store holds what the spec says
 *   Progressing  not yet; the operator retries by itself
 *   Stalled      a person has to change the manifest, or to decide something
 */

/** The reasons of our conditions and Events; users write alerts on them, so they are never renamed. */
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
  | "NoWorkspace"
  | "WorkspaceChanged"
  | "HasKeys"
  | "DeleteProtected"
  | "SecretNotOurs"
  | "MissingRights"
  | "Expired"
  | "NoPods"
  | "ReportsUnavailable"
  | "PastStaleAfter"
  | "CountersAway"
  | "FormatNotKnown"
  | "LaterRelease"
  | "UnguardedPods"
  | "PodsOutdated"
  | "PodsSilent"
  | "ServicePastGate"
  | "PodsUnavailable"
  | "NetworkPolicyNone"
  | "NetworkPoliciesUnavailable"
  | "OtherNetworkPolicy"
  | "PodsNotCovered"
  | "InterceptionNone"
  | "Redirected"
  | "NoSelector"
  | "NotSupported";

export interface Verdict {
  readonly state: "Ready" | "Progressing" | "Stalled";
  readonly reason: Reason;
  /** One or two sentences for the author of the manifest, which say what to do. */
  readonly message: string;
}

/** The result of resolving a reference to a RatelimitNamespace: the store's id, or why there is none yet. */
export type ResolvedNamespace = { readonly namespaceId: string } | { readonly verdict: Verdict };

/** A condition in addition to those of every object. */
export interface FurtherCondition {
  readonly type: "Accepted" | "Enforced" | "Refused" | "Bypassable" | "Stale" | "Overshot" | "UnknownFields";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: Reason;
  readonly message: string;
  /** The condition is abnormal while True, and an Event tells when that begins and when it ends. */
  readonly alerts?: true;
  /** An Event with this text tells when the condition gets this reason. */
  readonly note?: string;
}

export interface Plan<Action> extends WorkResult {
  /** What is still to be done, in this order; after it the world is looked at again. */
  readonly actions: readonly Action[];
  /** How things stand, or with actions to do: how they stand until those have succeeded. */
  readonly verdict: Verdict;
  /** The fields of the status that the kind has of its own. */
  readonly status: object;
  readonly conditions?: readonly FurtherCondition[];
  /** When the store was read, if that was long before. */
  readonly seenAtMs?: number;
  /** How often what the pods report is wanted; for policies alone, which poll it. */
  readonly pace?: Pace | undefined;
  /** The actions are what passing time asks for, such as a rotation: the store does not differ from the manifest. */
  readonly isDue?: true;
  /** The object is being deleted and has nothing in the store any more. */
  readonly released?: true;
}

export const ready = (message: string): Verdict => ({ state: "Ready", reason: "Succeeded", message });
export const progressing = (reason: Reason, message: string): Verdict => ({ state: "Progressing", reason, message });
export const stalled = (reason: Reason, message: string): Verdict => ({ state: "Stalled", reason, message });

/** Of an object that is being deleted and has nothing left to clean up. */
export const released: Plan<never> = {
  actions: [],
  verdict: progressing("Progressing", "The object is being deleted."),
  status: {},
  released: true,
};

/** Nothing is done while a check finds something. A conflict may end without anything that we are told of, so we look again. */
export const heldUp = (verdict: Verdict, status: object): Plan<never> => ({
  actions: [],
  verdict,
  status,
  ...(verdict.reason === "Conflict" ? { requeueAfterMs: CONFLICT_REQUEUE_MS } : {}),
});

/** Returns the result of the first check that finds something, so that the list of checks reads as the specification. */
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

/** Other writers, in this or another cluster, may release an object, so a conflict is checked again before the next resync. */
export const CONFLICT_REQUEUE_MS = 30_000;

/** What has long been in conflict is checked less and less often, up to the resync period: a thousand such objects cost calls, too. */
export const laterWhileHeld = (requeueAfterMs: number | undefined, heldForMs: number): number | undefined =>
  requeueAfterMs === undefined ? undefined : Math.max(requeueAfterMs, heldForMs / 10);
