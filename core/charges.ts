/*
 * What a request is charged, and what came of it. Rate limits and credits are charged together: limits first, all or none of
 * them, and credits last. What decides lies in core/ratelimits and core/credits; edge/counters carries it out.
 */

/** What is counted together: `namespace` scopes are namespace ids, `name` scopes are limit names, `quota` is a workspace's own. */
export interface CounterScope {
  readonly kind: "namespace" | "name" | "quota";
  readonly value: string;
}

export interface LimitCharge {
  readonly workspaceId: string;
  readonly scope: CounterScope;
  readonly identifier: string;
  readonly limit: number;
  readonly durationMs: number;
  /** 0 checks without consuming. */
  readonly cost: number;
  /** `local`: decided in this process at once, synced in the background; may over-admit between two syncs. */
  readonly accuracy: "strict" | "local";
}

export interface CreditCharge {
  readonly workspaceId: string;
  readonly keyId: string;
  /** 0 reads what remains. */
  readonly cost: number;
}

export interface LimitOutcome {
  /** Whether this charge's own limit allows it, whatever becomes of the others. */
  readonly passed: boolean;
  readonly remaining: number;
  /** Unix ms: the end of the current window. */
  readonly resetMs: number;
  /** For a refusal: the first moment (Unix ms) at which the same charge could pass; Infinity if it never can. */
  readonly retryAtMs?: number;
}

/** `unknown`: the counter is not loaded or closed; a load was asked for. `unreached`: a limit refused first. */
export type CreditOutcome =
  | { readonly status: "spent" | "refused"; readonly remaining: number }
  | { readonly status: "unknown" }
  | { readonly status: "unreached"; readonly remaining: number | undefined };

export interface Consumed {
  /** The clock that decided, Unix ms. */
  readonly nowMs: number;
  /** In the order of the charges. */
  readonly limits: readonly LimitOutcome[];
  readonly passed: boolean;
  /** undefined when no credits were charged. */
  readonly credits?: CreditOutcome | undefined;
}
