/*
 * Bounds the identifiers that clients can invent for one limit. In each window a gate counts the first identifiers separately; all others
 * share a counter. So a client that sends a new value with each request fills neither Redis nor the memory of the gate, and does not escape
 * the limit. A client that the limit identifies by key, identity or address has its own bound, so that it cannot use up the identifiers of
 * other clients.
 */

/** Maximum number of identifiers of a limit per window. */
const DISTINCT_MAX = 10_000;
/** Maximum number of identifiers of all limits of a policy together, per window. */
const DISTINCT_OF_POLICY_MAX = 50_000;
/** Maximum number of identifiers of a limit per window that have the same key, identity, address and method. */
const DISTINCT_OF_GROUP_MAX = 1_000;

/** Number of requests that were counted on the shared counter because their limit has too many identifiers. */
export interface SharedRequests {
  count: number;
}

/** Returns the maximum number of identifiers of each limit, in a policy with `limits` limits. */
export const distinctMaxOf = (limits: number): number =>
  Math.min(DISTINCT_MAX, Math.floor(DISTINCT_OF_POLICY_MAX / limits));

export interface DistinctOptions {
  readonly durationMs: number;
  readonly max: number;
  readonly shared: SharedRequests;
  readonly nowMs: () => number;
}

export class DistinctValues {
  readonly #options: DistinctOptions;
  readonly #identifiers = new Set<string>();
  readonly #ofGroup = new Map<string, number>();
  #window = -1;

  constructor(options: DistinctOptions) {
    this.#options = options;
  }

  /**
   * Returns whether the identifier is counted separately. `group` is the part of the identifier that the client cannot invent; it is empty
   * if there is none.
   */
  admits(group: string, identifier: string): boolean {
    const { nowMs, durationMs, max, shared } = this.#options;
    const window = Math.floor(nowMs() / durationMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#identifiers.clear();
      this.#ofGroup.clear();
    }
    if (this.#identifiers.has(identifier)) return true;
    const ofGroup = this.#ofGroup.get(group) ?? 0;
    if (this.#identifiers.size >= max || (group !== "" && ofGroup >= DISTINCT_OF_GROUP_MAX)) {
      shared.count += 1;
      return false;
    }
    this.#identifiers.add(identifier);
    this.#ofGroup.set(group, ofGroup + 1);
    return true;
  }
}
