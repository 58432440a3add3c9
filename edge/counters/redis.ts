import { type CounterCharge, decideLimits } from "../../core/ratelimits/decide-limits.ts";
import type { WindowCounts } from "../../core/ratelimits/window.ts";
import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { runScript } from "../redis/script.ts";
import { type Consumed, type ConsumeRequest, CountersUnavailable, type CreditOutcome } from "./contract.ts";
import { CounterKeys } from "./counter-keys.ts";
import { CONSUME } from "./scripts.ts";
import { reportRefused, type StrictCounters } from "./strict.ts";

/** Decides all limits and the credits of a request in one call of one script on one Redis. */
export class RedisCounters implements StrictCounters {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #counterKeys: CounterKeys;

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, keys: RedisKeys) {
    this.#client = client;
    this.#keys = keys;
    this.#counterKeys = new CounterKeys(keys);
  }

  async consume(request: ConsumeRequest, options?: { dryRun?: boolean }): Promise<Consumed> {
    const dryRun = options?.dryRun === true;
    const command = this.#command(request, dryRun);
    let reply: unknown;
    try {
      reply = await runScript(this.#client, CONSUME, command.numberOfKeys, command.argv);
    } catch (error) {
      throw new CountersUnavailable("counting in Redis", { cause: error });
    }
    return readConsumed(reply as number[], command, dryRun);
  }

  async close(): Promise<void> {}

  #command({ limits, credits }: ConsumeRequest, dryRun: boolean): ConsumeCommand {
    const counterKeys: string[] = [];
    const charges: CounterCharge[] = [];
    const durations: number[] = [];
    const triples: number[] = [];
    for (const charge of limits) {
      const { limit, durationMs, cost } = charge;
      const counterKey = this.#counterKeys.of(charge);
      let counter = counterKeys.indexOf(counterKey);
      if (counter === -1) {
        counter = counterKeys.push(counterKey) - 1;
        durations.push(durationMs);
      }
      charges.push({ counterKey, limit, durationMs, cost });
      triples.push(counter + 1, limit, cost);
    }
    const spends = credits !== undefined && !dryRun;
    const argv: (string | number)[] = [...counterKeys];
    if (spends) {
      const { workspaceId, keyId } = credits;
      const keys = this.#keys;
      argv.push(keys.credits(workspaceId, keyId), keys.creditsDirty(workspaceId), keys.creditsLoad(workspaceId));
    }
    const numberOfKeys = argv.length;
    argv.push(counterKeys.length, dryRun ? "1" : "0", spends ? credits.cost : "", spends ? credits.keyId : "");
    argv.push(...durations, ...triples);
    return { numberOfKeys, argv, counterKeys, charges, spends };
  }
}

interface ConsumeCommand {
  readonly numberOfKeys: number;
  readonly argv: readonly (string | number)[];
  readonly counterKeys: readonly string[];
  readonly charges: readonly CounterCharge[];
  readonly spends: boolean;
}

/** The script says whether all passed and what the counters held; what that means for each charge is core's to say. */
function readConsumed(reply: readonly number[], command: ConsumeCommand, dryRun: boolean): Consumed {
  const { counterKeys, charges, spends } = command;
  const nowMs = reply[0] ?? 0;
  const read = (counterKey: string) => countsAt(reply, 2 + 3 * counterKeys.indexOf(counterKey));
  const { outcomes } = decideLimits(charges, read, nowMs);
  const limits = dryRun ? reportRefused(charges, outcomes, { read, nowMs }) : outcomes;
  const base = { nowMs, limits, passed: reply[1] === 1 };
  if (!spends) return base;
  const at = 2 + 3 * counterKeys.length;
  return { ...base, credits: creditOutcome(reply[at] ?? 3, reply[at + 1] ?? -1) };
}

export function countsAt(reply: readonly number[], at: number): WindowCounts {
  return { window: reply[at] ?? 0, current: reply[at + 1] ?? 0, previous: reply[at + 2] ?? 0 };
}

/** Reads the status that the scripts give: 0 unreached, 1 spent, 2 refused, 3 not loaded or closed. */
export function creditOutcome(status: number, remaining: number): CreditOutcome {
  if (status === 0) return { status: "unreached", remaining: remaining < 0 ? undefined : remaining };
  if (status === 1) return { status: "spent", remaining };
  if (status === 2) return { status: "refused", remaining };
  return { status: "unknown" };
}
