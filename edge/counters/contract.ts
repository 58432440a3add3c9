import type { Closeable } from "../projection/contract.ts";

/*
 * Counting rate limits and spending credits, where all processes see the same numbers. The arithmetic is
 * core/ratelimits (api/v2 section 9) and core/credits (section 10); each implementation decides with the store's clock.
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
  /** `local`: decided in this process at once, exchanged in the background; may over-admit between exchanges. */
  readonly accuracy: "strict" | "local";
}

export interface CreditCharge {
  readonly workspaceId: string;
  readonly keyId: string;
  /** 0 reads what remains. */
  readonly cost: number;
}

export interface ConsumeRequest {
  /**
   * All or nothing. Two charges on one counter see each other's cost. The list is not changed afterwards: what was made of
   * it is remembered.
   */
  readonly limits: readonly LimitCharge[];
  /** Spent last, only when every limit passed; limits stay consumed when credits refuse. */
  readonly credits?: CreditCharge | undefined;
}

export interface LimitOutcome {
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
  /** In the order of the request. */
  readonly limits: readonly LimitOutcome[];
  readonly passed: boolean;
  readonly credits?: CreditOutcome | undefined;
}

/**
 * The shared store cannot be reached, or did not answer in time. What it comes to later is not counted; of what it had come to by
 * then, nothing is known.
 */
export class CountersUnavailable extends Error {
  override name = "CountersUnavailable";
}

export interface Counters extends Closeable {
  /** One round trip on a single store. Throws `CountersUnavailable`. A consuming call is never sent twice. */
  consume(request: ConsumeRequest): Promise<Consumed>;
}
