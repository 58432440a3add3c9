import type { LimitCharge } from "../../core/charges.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { countedHash, type RedisKeys } from "../redis/keys.ts";
import { counterName } from "./memory.ts";

const REMEMBERED_MAX = 20_000;

/** Returns the Redis key of a charge's counter. Keys are cached, because most callers send many requests with the same charges. */
export class CounterKeys {
  readonly #keys: RedisKeys;
  readonly #remembered = new BoundedCache<string, string>(REMEMBERED_MAX);

  constructor(keys: RedisKeys) {
    this.#keys = keys;
  }

  of(charge: LimitCharge): string {
    const name = counterName(charge);
    const known = this.#remembered.get(name);
    if (known !== undefined) return known;
    const { scope, workspaceId, identifier, durationMs } = charge;
    const key = this.#keys.counter(workspaceId, countedHash(scope.kind, scope.value, identifier), durationMs);
    this.#remembered.set(name, key);
    return key;
  }
}
