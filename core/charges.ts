/*
 * Charges of a request and their outcomes. Rate limits and credits are charged together: first all rate limits or none of them, then the
 * credits. core/ratelimits and core/credits contain the rules, and edge/counters applies them to the stored counters.
 */

/**
 * Scope of a counter. `value` is the namespace id for `namespace`, the limit name for `name`, an identifier of a workspace's quota for
 * `quota`, and the policy id for `attempts` (failed attempts of an address) and `spared` (a key that succeeded from an address).
 */
export interface CounterScope {
  readonly kind: "namespace" | "name" | "quota" | "attempts" | "spared";
  readonly value: string;
}

export interface LimitCharge {
  readonly workspaceId: string;
  readonly scope: CounterScope;
  readonly identifier: string;
  readonly limit: number;
  readonly durationMs: number;
  /** Units to consume; 0 checks without consuming. */
  readonly cost: number;
  /** `local`: decided in this process and synced in the background; may over-admit between two syncs. */
  readonly accuracy: "strict" | "local";
}

export interface CreditCharge {
  readonly workspaceId: string;
  readonly keyId: string;
  /** Credits to spend; 0 reads the remaining credits. */
  readonly cost: number;
}

export interface LimitOutcome {
  /** Whether this charge's own limit allows it, even if another limit rejects the request. */
  readonly passed: boolean;
  readonly remaining: number;
  /** End of the current window, Unix ms. */
  readonly resetMs: number;
  /** For a rejection: the first timestamp (Unix ms) at which the same charge could pass; `Infinity` if it never can. */
  readonly retryAtMs?: number;
}

/** `unknown`: the counter is closed or not loaded, and a load was requested. `unreached`: a limit rejected the request first. */
export type CreditOutcome =
  | { readonly status: "spent" | "refused"; readonly remaining: number }
  | { readonly status: "unknown" }
  | { readonly status: "unreached"; readonly remaining: number | undefined };

export interface Consumed {
  /** Time of the clock by which the charges were decided, Unix ms. */
  readonly nowMs: number;
  /** Outcomes in the order of the charges. */
  readonly limits: readonly LimitOutcome[];
  readonly passed: boolean;
  /** Outcome of the credit charge; `undefined` if no credits were charged. */
  readonly credits?: CreditOutcome | undefined;
}
