import { PublicError } from "../../core/errors.ts";
import { networkOf } from "../../core/verification/ip-address.ts";
import { Allowances, type AllowancesOptions } from "../allowances.ts";

/*
 * What strangers may cost who try to sign in. Tokens have 256 bits and cannot be guessed: this bounds the work for Postgres and for the
 * provider. It is counted in each process by itself.
 */

export interface SignInBoundsOptions {
  readonly windowMs: number;
  /** Of one address; of IPv6 its first 64 bits. */
  readonly address: number;
  /** Of all together, so that many addresses cannot keep the database busy. */
  readonly all: number;
  /** What a try that fails costs more. */
  readonly failed: number;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** Ten tries that fail in a minute, or sixty that do not: a whole office may come from one address. */
export const DEFAULT_SIGN_IN_BOUNDS: SignInBoundsOptions = {
  windowMs: 60_000,
  address: 60,
  all: 1_200,
  failed: 5,
  nowMs: () => performance.now(),
};

const ALL = "all";

export class SignInBounds {
  readonly #addresses: Allowances;
  readonly #all: Allowances;
  readonly #failed: number;

  constructor({ windowMs, address, all, failed, nowMs }: SignInBoundsOptions = DEFAULT_SIGN_IN_BOUNDS) {
    const allowancesOf = (max: number): AllowancesOptions => ({ windowMs, max, nowMs });
    this.#addresses = new Allowances(allowancesOf(address));
    this.#all = new Allowances(allowancesOf(all));
    this.#failed = failed;
  }

  /** Throws PublicError, 429 `sign_in_limited`, when the address has tried too often, or all have. */
  begin(address: string): void {
    // An address that is over its own bound does not use up that of all.
    this.#demand(this.#addresses.spend(networkOf(address), 1));
    this.#demand(this.#all.spend(ALL, 1));
  }

  failed(address: string): void {
    this.#addresses.spend(networkOf(address), this.#failed);
  }

  #demand(leftMs: number | undefined): void {
    if (leftMs === undefined) return;
    throw new PublicError("sign_in_limited", "There were too many tries to sign in.", {
      headers: { "Retry-After": String(Math.ceil(leftMs / 1000)) },
    });
  }
}
