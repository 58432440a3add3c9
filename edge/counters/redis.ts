import { type CounterCharge, decideLimits } from "../../core/ratelimits/decide-limits.ts";
import type { WindowCounts } from "../../core/ratelimits/window.ts";
import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { runScript } from "../redis/script.ts";
import {
  type Consumed,
  type ConsumeRequest,
  CountersUnavailable,
  type CreditCharge,
  type CreditOutcome,
} from "./contract.ts";
import { CounterKeys } from "./counter-keys.ts";
import { CONSUME, CONSUME_MANY } from "./scripts.ts";
import { reportRefused, type StrictCounters } from "./strict.ts";

/** More in one script would keep others waiting. */
const TOGETHER_MAX = 32;

interface Waiting {
  readonly command: ConsumeCommand;
  readonly resolve: (consumed: Consumed) => void;
  readonly reject: (error: CountersUnavailable) => void;
}

/**
 * Decides all limits and the credits of a request in one call of one script on one Redis. Requests of one turn of the event
 * loop go there together, at its end: one that is alone is not held up by this, and under load it saves most of the cost.
 */
export class RedisCounters implements StrictCounters {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #counterKeys: CounterKeys;
  #waiting: Waiting[] = [];

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, keys: RedisKeys) {
    this.#client = client;
    this.#keys = keys;
    this.#counterKeys = new CounterKeys(keys);
  }

  consume(request: ConsumeRequest, options?: { dryRun?: boolean }): Promise<Consumed> {
    const command = this.#command(request, options?.dryRun === true);
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ command, resolve, reject }) === 1) setImmediate(() => this.#sendAll());
    });
  }

  async close(): Promise<void> {}

  #sendAll(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (let at = 0; at < all.length; at += TOGETHER_MAX) {
      const group = all.length <= TOGETHER_MAX ? all : all.slice(at, at + TOGETHER_MAX);
      this.#send(group).then(
        (replies) => settle(group, replies),
        (cause: unknown) => {
          for (const { reject } of group) reject(new CountersUnavailable("counting in Redis", { cause }));
        },
      );
    }
  }

  /** The numbers that the script gives for each of the group, in order; undefined for a request that failed by itself. */
  async #send(group: readonly Waiting[]): Promise<readonly (readonly number[] | undefined)[]> {
    const [first] = group;
    if (first !== undefined && group.length === 1) {
      const { keys, args } = first.command;
      return [(await runScript(this.#client, CONSUME, keys.length, [...keys, ...args])) as number[]];
    }
    const argv: (string | number)[] = [];
    for (const { command } of group) argv.push(...command.keys);
    const numberOfKeys = argv.length;
    for (const { command } of group) argv.push(command.keys.length, command.args.length, ...command.args);
    const reply = (await runScript(this.#client, CONSUME_MANY, numberOfKeys, argv)) as string;
    return reply.split("\n").map((line) => (line === "" ? undefined : line.split(" ").map(Number)));
  }

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
    const args = [counterKeys.length, dryRun ? "1" : "0", spends ? credits.cost : "", spends ? credits.keyId : ""];
    args.push(...durations, ...triples);
    return {
      keys: spends ? this.#withCredits(counterKeys, credits) : counterKeys,
      args,
      counterKeys,
      charges,
      spends,
      dryRun,
    };
  }

  #withCredits(counterKeys: readonly string[], { workspaceId, keyId }: CreditCharge): string[] {
    const keys = this.#keys;
    const ofCredits = [keys.credits(workspaceId, keyId), keys.creditsDirty(workspaceId), keys.creditsLoad(workspaceId)];
    return [...counterKeys, ...ofCredits];
  }
}

function settle(group: readonly Waiting[], replies: readonly (readonly number[] | undefined)[]): void {
  for (const [i, { command, resolve, reject }] of group.entries()) {
    const reply = replies[i];
    if (reply === undefined) reject(new CountersUnavailable("counting in Redis: the script failed"));
    else resolve(readConsumed(reply, command));
  }
}

interface ConsumeCommand {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly counterKeys: readonly string[];
  readonly charges: readonly CounterCharge[];
  readonly spends: boolean;
  readonly dryRun: boolean;
}

/** The script says whether all passed and what the counters held; what that means for each charge is core's to say. */
function readConsumed(reply: readonly number[], command: ConsumeCommand): Consumed {
  const { counterKeys, charges, spends, dryRun } = command;
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
