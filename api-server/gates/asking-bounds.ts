import { PublicError } from "../../core/errors.ts";
import { Places } from "../../edge/places.ts";
import { Allowances } from "../allowances.ts";

/*
 * What one address may cost when it asks for users of Redis. Anything in the cluster can send tokens, and only the Kubernetes API can tell
 * the good ones: so each address has a share of the questions that are asked there at once, and an allowance per minute. A token that is
 * refused costs as much as a hundred that are not. All gates of a node may come from one address, and all of them may wait for policies.
 */

export interface AskingBoundsOptions {
  /** Questions to the Kubernetes API at once. */
  readonly placesMax: number;
  /** The part of them that one address may have. */
  readonly share: number;
  /** What an address may cost in a window, and a pod. */
  readonly allowances: { readonly windowMs: number; readonly address: number; readonly pod: number };
  /** Monotonic. */
  readonly nowMs: () => number;
}

export const DEFAULT_BOUNDS: AskingBoundsOptions = {
  placesMax: 20,
  share: 0.25,
  allowances: { windowMs: 60_000, address: 1_000, pod: 10 },
  nowMs: () => performance.now(),
};

const REFUSED_COST = 100;

export class AskingBounds {
  readonly #places: Places;
  readonly #addresses: Allowances;
  readonly #pods: Allowances;

  constructor({ placesMax, share, allowances, nowMs }: AskingBoundsOptions = DEFAULT_BOUNDS) {
    const { windowMs, address, pod } = allowances;
    this.#places = new Places({ max: placesMax, share, waitMs: 0 });
    this.#addresses = new Allowances({ windowMs, max: address, nowMs });
    this.#pods = new Allowances({ windowMs, max: pod, nowMs });
  }

  /** Asks about a token for a caller from `address`. Throws PublicError, 429, when the address may not. */
  async ask<T>(address: string, review: () => Promise<T>): Promise<T> {
    this.#spend(this.#addresses, address, 1);
    // No waiting: a caller that waits costs memory, and gates come again.
    if (!this.#places.tryTake(address)) throw tooMany(1);
    try {
      return await review();
    } finally {
      this.#places.release(address);
    }
  }

  /** The token of the last question was not valid. */
  tokenRefused(address: string): void {
    this.#addresses.spend(address, REFUSED_COST);
  }

  /** A pod gets a user. Throws PublicError, 429, when it has got too many: a gate that lost its user asks again, but not in a loop. */
  issue(address: string, podUid: string): void {
    try {
      this.#spend(this.#pods, podUid, 1);
    } catch (error) {
      this.tokenRefused(address);
      throw error;
    }
  }

  #spend(allowances: Allowances, key: string, cost: number): void {
    const leftMs = allowances.spend(key, cost);
    if (leftMs !== undefined) throw tooMany(Math.ceil(leftMs / 1000));
  }
}

const tooMany = (retryAfterS: number): PublicError =>
  new PublicError("gate_credentials_limited", "Too many requests for users of Redis came from this address or pod.", {
    headers: { "Retry-After": String(retryAfterS) },
  });
