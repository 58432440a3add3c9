/*
 * Charges of a request and their outcomes. A request is charged to all of its rate limits or, if one of them rejects it, to none; then its
 * credits are spent. core/ratelimits and core/credits contain the rules, and edge/counters applies them to the stored counters.
 */

/**
 * Scope of a counter. `value` depends on `kind`. `namespace`: the namespace id. `name`: the limit name. `quota`: an identifier of a
 * workspace's quota. `attempts` (failed attempts of an address) and `spared` (a key that succeeded from an address): the policy id.
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
  /** Whether this limit allows the charge, regardless of the request's other limits. */
  readonly passed: boolean;
  readonly remaining: number;
  /** End of the current window, Unix ms. */
  readonly resetMs: number;
  /** For a rejection: the earliest time (Unix ms) at which the same charge could pass; `Infinity` if it can never pass. */
  readonly retryAtMs?: number;
}

/** `unknown`: the counter is closed or not loaded, and a load was requested. `unreached`: a limit rejected the request first. */
export type CreditOutcome =
  | { readonly status: "spent" | "refused"; readonly remaining: number }
  | { readonly status: "unknown" }
  | { readonly status: "unreached"; readonly remaining: number | undefined };

export interface Consumed {
  /** Time at which the charges were decided, by the deciding clock, Unix ms. */
  readonly nowMs: number;
  /** Outcomes in the order of the charges. */
  readonly limits: readonly LimitOutcome[];
  readonly passed: boolean;
  /** Outcome of the credit charge; `undefined` if no credits were charged. */
  readonly credits?: CreditOutcome | undefined;
}
