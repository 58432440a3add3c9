import { PublicError } from "../../core/errors.ts";
import { ConcurrencyLimiter } from "../../edge/concurrency-limiter.ts";
import { Allowances } from "../plugins/allowances.ts";

/*
 * Limits the cost that one address can cause by requesting Redis users. Any client in the cluster can send tokens, and only the Kubernetes
 * API can validate them, so each address has a share of the concurrent TokenReview calls and an allowance per minute. A rejected token
 * costs as much as a hundred valid ones. The limits are high enough for all gates of a node that share one address and all wait for their
 * policies.
 */

export interface RequestLimitsOptions {
  /** Maximum number of concurrent TokenReview calls. */
  readonly concurrencyMax: number;
  /** Maximum fraction of the concurrent calls that one address can use. */
  readonly share: number;
  /** Maximum cost per window: of one address, and of one pod. */
  readonly allowances: { readonly windowMs: number; readonly address: number; readonly pod: number };
  /** Returns monotonic time, ms. */
  readonly nowMs: () => number;
}

export const DEFAULT_BOUNDS: RequestLimitsOptions = {
  concurrencyMax: 20,
  share: 0.25,
  allowances: { windowMs: 60_000, address: 1_000, pod: 10 },
  nowMs: () => performance.now(),
};

const REFUSED_COST = 100;

export class RequestLimits {
  readonly #places: ConcurrencyLimiter;
  readonly #addresses: Allowances;
  readonly #pods: Allowances;

  constructor({ concurrencyMax, share, allowances, nowMs }: RequestLimitsOptions = DEFAULT_BOUNDS) {
    const { windowMs, address, pod } = allowances;
    this.#places = new ConcurrencyLimiter({ max: concurrencyMax, share, waitMs: 0 });
    this.#addresses = new Allowances({ windowMs, max: address, nowMs });
    this.#pods = new Allowances({ windowMs, max: pod, nowMs });
  }

  /** Has the Kubernetes API review a token for a caller from `address`. Throws PublicError 429 if the address exceeds its limits. */
  async ask<T>(address: string, review: () => Promise<T>): Promise<T> {
    this.#spend(this.#addresses, address, 1);
    // Fails instead of waiting: waiting callers would take memory, and gates retry anyway.
    if (!this.#places.tryAcquire(address)) throw tooMany(1);
    try {
      return await review();
    } finally {
      this.#places.release(address);
    }
  }

  /** Charges the address for an invalid token, in addition to the charge for the review. */
  tokenRefused(address: string): void {
    this.#addresses.spend(address, REFUSED_COST);
  }

  /**
   * Charges the pod for a Redis user. Throws PublicError 429 if the pod has received too many: a gate that lost its user may request
   * another one, but not in a loop.
   */
  issue(address: string, podUid: string): void {
    try {
      this.#spend(this.#pods, podUid, 1);
    } catch (error) {
      this.tokenRefused(address);
      throw error;
    }
  }

  #spend(allowances: Allowances, key: string, cost: number): void {
    const remainingMs = allowances.spend(key, cost);
    if (remainingMs !== undefined) throw tooMany(remainingMs / 1000);
  }
}

const tooMany = (retryAfterS: number): PublicError =>
  new PublicError(
    "gate_credentials_limited",
    "This address or pod has requested too many Redis users; try again later.",
    {
      retryAfterS,
    },
  );
