import type { LimitCharge } from "../../core/charges.ts";
import { type AttemptCounters, attemptCounters, hasSucceeded, SPARED_MS } from "../../core/policies/failed-attempts.ts";
import { retryAtMs, secondsUntil } from "../../core/ratelimits/limit-headers.ts";
import type { Code } from "../../core/verification/codes.ts";
import { BoundedCache } from "../../edge/bounded-cache.ts";
import type { EdgeCounters } from "../../edge/open.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";

/*
 * Limits the failed attempts of a client address (`failedAttempts` of a policy), so that keys cannot be guessed.
 *
 *   attempt ─► has the address failed lately? ──no──► look the key up
 *                 └─yes─► above the limit? ──no─────► look the key up
 *                            └─yes─► has the key succeeded from this address within the last hour? ──yes──► look the key up
 *                                       └─no─► 429
 *
 * Failures are counted in this process and synced with the other gates every 100 ms, so a request with a correct key waits for nothing. A
 * client that sends several attempts at once may exceed the limit by those that are in flight and by those of the last 100 ms.
 *
 * A key that succeeded is remembered here, and by the counter of its address and its hash in Redis, so that it is spared by gates that have
 * not seen it. The name of that counter is a hash.
 */

/** Maximum number of remembered addresses with failures. Beyond it, the oldest address is forgotten until it fails again. */
const ADDRESSES_MAX = 10_000;
/** Maximum number of remembered pairs of a key and an address from which the key succeeded. */
const SUCCESSES_MAX = 10_000;
/** Minimum interval between two records of a success of the same key from the same address. */
const REFRESH_MS = 600_000;
/** Maximum number of lookups per second for successes at other gates. This bounds the load that a flood of guesses puts on Redis. */
const LOOKUPS_MAX = 200;

/** Codes of requests with a guessed or an old key. */
const FAILURES: ReadonlySet<Code> = new Set(["NOT_FOUND", "EXPIRED", "DISABLED"]);

/** A request with a key. */
export interface Attempt {
  readonly active: Pick<ActivePolicy, "policy" | "record">;
  /** Address that counts as one client (`networkOf`). */
  readonly address: string;
  /** Hash of the key. */
  readonly hash: string;
}

export interface FailedAttemptsDeps {
  /** Kept separate from the counters of the rules' limits, so that a large number of addresses cannot evict those counters. */
  readonly counters: Pick<EdgeCounters, "consume" | "peek" | "check">;
  readonly workspaceId: string;
  /** Returns the shared store's time, Unix ms. */
  readonly nowMs: () => number;
  readonly onInternalError: (error: unknown) => void;
}

export class FailedAttempts {
  readonly #deps: FailedAttemptsDeps;
  readonly #addresses = new BoundedCache<string, true>(ADDRESSES_MAX);
  /** Time of the last recorded success, Unix ms, by address and key hash. */
  readonly #successes = new BoundedCache<string, number>(SUCCESSES_MAX);
  #lookups = { second: 0, count: 0 };

  constructor(deps: FailedAttemptsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns `undefined` if the key may be looked up, otherwise the seconds until the address may try again. Returns synchronously unless
   * the address is above the limit.
   */
  check(attempt: Attempt): number | undefined | Promise<number | undefined> {
    const { policy } = attempt.active;
    if (policy.failedAttempts === undefined || this.#addresses.get(attempt.address) === undefined) return undefined;
    const outcome = this.#deps.counters.check(this.#counters(attempt).failure);
    if (outcome.passed) return undefined;
    const nowMs = this.#deps.nowMs();
    const succeededMs = this.#successes.get(nameOf(attempt));
    if (succeededMs !== undefined && nowMs - succeededMs < SPARED_MS) return undefined;
    const retryAfterS = secondsUntil(retryAtMs(outcome), nowMs);
    if (!this.#mayLookUp(nowMs)) return retryAfterS;
    return this.#deps.counters.peek([this.#counters(attempt).success]).then(
      ({ limits: [success] }) => (hasSucceeded(success) ? undefined : retryAfterS),
      // Without the shared store, only successes at this gate are known.
      () => retryAfterS,
    );
  }

  /** Records the outcome of an attempt. */
  record(attempt: Attempt, code: Code): void {
    if (attempt.active.policy.failedAttempts === undefined) return;
    if (code === "VALID") this.#recordSuccess(attempt);
    else if (FAILURES.has(code)) {
      this.#addresses.set(attempt.address, true);
      this.#consume(this.#counters(attempt).failure);
    }
  }

  #recordSuccess(attempt: Attempt): void {
    const name = nameOf(attempt);
    const nowMs = this.#deps.nowMs();
    const before = this.#successes.get(name);
    if (before !== undefined && nowMs - before < REFRESH_MS) return;
    this.#successes.set(name, nowMs);
    this.#consume(this.#counters(attempt).success);
  }

  /** Consumes without waiting for the store: charges with local accuracy are decided in this process. */
  #consume(charge: LimitCharge): void {
    this.#deps.counters.consume({ limits: [charge] }).catch(this.#deps.onInternalError);
  }

  #mayLookUp(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1_000);
    if (this.#lookups.second !== second) this.#lookups = { second, count: 0 };
    this.#lookups.count += 1;
    return this.#lookups.count <= LOOKUPS_MAX;
  }

  #counters({ active: { policy, record }, address, hash }: Attempt): AttemptCounters {
    const limit = policy.failedAttempts ?? { limit: 0, durationMs: 1_000 };
    return attemptCounters({ workspaceId: this.#deps.workspaceId, policyId: record.policyId, limit, address, hash });
  }
}

const nameOf = ({ address, hash }: Attempt): string => `${address} ${hash}`;
