import { PublicError } from "../../core/errors.ts";
import { networkOf } from "../../core/verification/ip-address.ts";
import { Allowances, type AllowancesOptions } from "../plugins/allowances.ts";

/*
 * Limits on sign-in attempts by unauthenticated clients. They protect Postgres and the provider from load; guessing is no threat, because
 * tokens have 256 bits. Each process counts separately.
 */

export interface SignInLimitsOptions {
  readonly windowMs: number;
  /** Maximum cost per client address (IPv6: per /64 network). */
  readonly address: number;
  /** Maximum cost of all addresses together, so that many addresses cannot keep the database busy. */
  readonly all: number;
  /** Additional cost of a failed attempt. */
  readonly failed: number;
  /** Returns monotonic time. */
  readonly nowMs: () => number;
}

/**
 * Default limits per minute and address: ten failed attempts or sixty successful ones. They are this high because all people in an office
 * may share one address.
 */
export const DEFAULT_SIGN_IN_LIMITS: SignInLimitsOptions = {
  windowMs: 60_000,
  address: 60,
  all: 1_200,
  failed: 5,
  nowMs: () => performance.now(),
};

const ALL = "all";

export class SignInLimits {
  readonly #addresses: Allowances;
  readonly #all: Allowances;
  readonly #failed: number;

  constructor({ windowMs, address, all, failed, nowMs }: SignInLimitsOptions = DEFAULT_SIGN_IN_LIMITS) {
    const allowancesOf = (max: number): AllowancesOptions => ({ windowMs, max, nowMs });
    this.#addresses = new Allowances(allowancesOf(address));
    this.#all = new Allowances(allowancesOf(all));
    this.#failed = failed;
  }

  /** Throws PublicError 429 `sign_in_limited` if the address, or all addresses together, exceeded the limit. */
  begin(address: string): void {
    // Charges the address first, so that an address over its own limit does not use up the limit of all addresses.
    this.#demand(this.#addresses.spend(networkOf(address), 1));
    this.#demand(this.#all.spend(ALL, 1));
  }

  failed(address: string): void {
    this.#addresses.spend(networkOf(address), this.#failed);
  }

  #demand(remainingMs: number | undefined): void {
    if (remainingMs === undefined) return;
    throw new PublicError("sign_in_limited", "There were too many sign-in attempts; try again later.", {
      retryAfterS: remainingMs / 1000,
    });
  }
}
