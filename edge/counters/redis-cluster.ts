import type { Consumed, CreditCharge, CreditOutcome, LimitOutcome } from "../../core/charges.ts";
import { type CounterCharge, decideLimits } from "../../core/ratelimits/decide-limits.ts";
import type { WindowCounts } from "../../core/ratelimits/window.ts";
import type { RedisClient } from "../redis/connect.ts";
import { DeadlineClock } from "../redis/deadline-clock.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { readNumbers, runScript } from "../redis/script.ts";
import { consumeText } from "./consume-text.ts";
import { type ConsumeRequest, CountersUnavailable } from "./contract.ts";
import { CounterKeys } from "./counter-keys.ts";
import { countsAt, creditOutcome, type Replies, scriptFailed, TOO_LATE, WAIT_MS } from "./redis.ts";
import { CONSUME, GIVE_BACK, SPEND_CREDITS } from "./scripts.ts";
import { type Caller, type ConsumeOptions, reportRefused, type StrictCounters } from "./strict.ts";

/** Credit status that a script returns after its deadline. */
const SPENT_TOO_LATE = 4;

/** The charges on one counter, and their positions in the request. */
interface Group {
  readonly counterKey: string;
  readonly durationMs: number;
  readonly charges: CounterCharge[];
  readonly positions: number[];
}

/** The charges on one counter, and the counter's reply. */
interface Share extends Group {
  readonly nowMs: number;
  readonly counts: WindowCounts;
  readonly passed: boolean;
}

/**
 * Counters on a cluster. Each counter may be in another slot, so all are called separately, at the same time. If one counter refuses, the
 * units charged to the others are given back. Until then, these units may cause a concurrent request to be refused, but no more than the
 * limit is ever admitted. Giving back is attempted only once: if that call is lost, a count is too high, never too low. Deadlines assume
 * that the clocks of the nodes differ by only a few milliseconds.
 */
export class RedisClusterCounters implements StrictCounters {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #counterKeys: CounterKeys;
  readonly #clock: DeadlineClock;

  constructor(client: RedisClient, keys: RedisKeys, clock: DeadlineClock = new DeadlineClock()) {
    this.#client = client;
    this.#keys = keys;
    this.#counterKeys = new CounterKeys(keys);
    this.#clock = clock;
  }

  async consume(request: ConsumeRequest, options: ConsumeOptions = {}): Promise<Consumed> {
    const { dryRun = false, caller = { dueMs: performance.now() + WAIT_MS } } = options;
    const asked = await Promise.allSettled(this.#group(request).map((group) => this.#ask(group, { dryRun, caller })));
    const shares = asked.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const failure = asked.find((result) => result.status === "rejected");
    const passed = failure === undefined && shares.every((share) => share.passed);
    if (!passed && !dryRun) await this.#giveBack(shares.filter((share) => share.passed));
    if (failure !== undefined) throw new CountersUnavailable("counting in Redis", { cause: failure.reason });
    const nowMs = shares.reduce((latest, share) => Math.max(latest, share.nowMs), 0) || Date.now();
    const limits = outcomesOf(request.limits.length, shares, passed && !dryRun);
    const { credits } = request;
    if (credits === undefined || dryRun) return { nowMs, limits, passed };
    return {
      nowMs,
      limits,
      passed,
      credits: passed ? await this.#spend(credits, caller) : await this.#readCredits(credits),
    };
  }

  async close(): Promise<void> {}

  #group({ limits }: ConsumeRequest): Group[] {
    const groups = new Map<string, Group>();
    for (const [place, charge] of limits.entries()) {
      const counterKey = this.#counterKeys.of(charge);
      const group = groups.get(counterKey) ?? { counterKey, durationMs: charge.durationMs, charges: [], positions: [] };
      groups.set(counterKey, group);
      group.charges.push({ counterKey, limit: charge.limit, durationMs: charge.durationMs, cost: charge.cost });
      group.positions.push(place);
    }
    return [...groups.values()];
  }

  async #ask(group: Group, { dryRun, caller }: { dryRun: boolean; caller: Caller }): Promise<Share> {
    const { counterKey, durationMs, charges } = group;
    const text = consumeText({ durations: [durationMs], charges, counters: charges.map(() => 0), dryRun });
    const reply = await this.#clock.inTime(this.#client, caller, async (deadlineMs) => {
      const sentAtMs = performance.now();
      const replies = await runScript(this.#client, CONSUME, 1, [counterKey, text, deadlineMs]);
      const [values] = JSON.parse(replies as string) as Replies;
      if (values == null) throw new Error(scriptFailed([counterKey]));
      this.#clock.observe({ sentAtMs, receivedAtMs: performance.now(), storeMs: values[0] ?? 0 });
      return values[1] === TOO_LATE ? undefined : values;
    });
    return { ...group, nowMs: reply[0] ?? 0, counts: countsAt(reply, 2), passed: reply[1] === 1 };
  }

  async #giveBack(shares: readonly Share[]): Promise<void> {
    await Promise.allSettled(
      shares.map(async ({ counterKey, charges, counts }) => {
        const cost = charges.reduce((sum, charge) => sum + charge.cost, 0);
        if (cost > 0) await runScript(this.#client, GIVE_BACK, 1, [counterKey, counts.window, cost]);
      }),
    );
  }

  async #spend({ workspaceId, keyId, cost }: CreditCharge, caller: Caller): Promise<CreditOutcome> {
    let reply: number[];
    try {
      const argv = [this.#keys.credits(workspaceId, keyId), cost];
      reply = await this.#clock.inTime(this.#client, caller, async (deadlineMs) => {
        const told = readNumbers(await runScript(this.#client, SPEND_CREDITS, 1, [...argv, deadlineMs]));
        return told[0] === SPENT_TOO_LATE ? undefined : told;
      });
    } catch (error) {
      throw new CountersUnavailable("spending credits in Redis", { cause: error });
    }
    const outcome = creditOutcome(reply[0] ?? 3, reply[1] ?? -1);
    if (outcome.status === "spent" && cost > 0) await this.#mark(this.#keys.creditsDirty(workspaceId), keyId);
    if (outcome.status === "unknown") await this.#mark(this.#keys.creditsLoad(workspaceId), keyId);
    return outcome;
  }

  async #readCredits({ workspaceId, keyId }: CreditCharge): Promise<CreditOutcome> {
    try {
      const read = await this.#client.hmget(this.#keys.credits(workspaceId, keyId), "granted", "spent", "open");
      const [granted, spent, open] = read;
      const [of, taken] = [readCount(granted), readCount(spent)];
      const isKnown = open === "1" && of !== undefined && taken !== undefined;
      return { status: "unreached", remaining: isKnown ? Math.max(0, of - taken) : undefined };
    } catch (error) {
      throw new CountersUnavailable("reading credits in Redis", { cause: error });
    }
  }

  /** Adding to a set is idempotent, so the command can be retried. If the entry is lost anyway, the key's next request adds it again. */
  async #mark(set: string, keyId: string): Promise<void> {
    for (let attempt = 0; attempt < 2; attempt++) {
      const isMarked = await this.#client.sadd(set, keyId).then(
        () => true,
        () => false,
      );
      if (isMarked) return;
    }
  }
}

/**
 * Parses a count with the same check as `whole` in the scripts, because a gate's Redis user can write any value into its workspace's
 * counters.
 */
function readCount(text: string | null | undefined): number | undefined {
  return text != null && /^\d{1,16}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER ? Number(text) : undefined;
}

function outcomesOf(count: number, shares: readonly Share[], isConsumed: boolean): LimitOutcome[] {
  const outcomes = new Array<LimitOutcome>(count);
  for (const { charges, positions, nowMs, counts } of shares) {
    const read = () => counts;
    const decided = decideLimits(charges, read, nowMs).outcomes;
    const reported = isConsumed ? decided : reportRefused(charges, decided, { read, nowMs });
    for (const [i, place] of positions.entries()) {
      const outcome = reported[i];
      if (outcome !== undefined) outcomes[place] = outcome;
    }
  }
  return outcomes;
}
