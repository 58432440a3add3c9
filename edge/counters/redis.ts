import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../core/charges.ts";
import { type CounterCharge, decideLimits } from "../../core/ratelimits/decide-limits.ts";
import type { WindowCounts } from "../../core/ratelimits/window.ts";
import type { RedisClient } from "../redis/connect.ts";
import { DeadlineClock } from "../redis/deadline-clock.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { runScript } from "../redis/script.ts";
import { consumeText } from "./consume-text.ts";
import { type ConsumeRequest, CountersUnavailable } from "./contract.ts";
import { CounterKeys } from "./counter-keys.ts";
import { CONSUME, CONSUME_KEYS_MAX, CONSUME_REQUESTS_MAX, CONSUME_TEXT_BYTES_MAX } from "./scripts.ts";
import { type Caller, type ConsumeOptions, reportRefused, type StrictCounters } from "./strict.ts";

/** Default time that a caller waits. */
export const WAIT_MS = 5_000;

interface Waiting {
  readonly command: ConsumeCommand;
  readonly caller: Caller;
  /**
   * Whether this is the second attempt. The first attempt reached the store after the request's deadline, as estimated on the store's
   * clock, so it changed nothing.
   */
  isSecond: boolean;
  readonly resolve: (consumed: Consumed) => void;
  readonly reject: (error: CountersUnavailable) => void;
}

/** The script's replies to a group of requests, in order; null for each request whose script call failed. */
export type Replies = readonly (readonly number[] | null)[];

/**
 * Decides all limits and the credits of a request in one script call on one Redis. A single request is sent immediately. Under load (when
 * the last call contained several requests), all requests of one event-loop turn are sent together at its end. Requests that arrive while a
 * reply is awaited are sent together when the reply arrives, as in Nagle's algorithm, or as soon as they fill a call. This saves most of
 * the cost per request, and delays a request by at most the wait for one reply.
 */
export class RedisCounters implements StrictCounters {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #counterKeys: CounterKeys;
  /**
   * Cached commands, by the charges of a request. The list of a key's own limits lives as long as the key's cached record. A list that ends
   * with a limit of a namespace is new for each request, so its command is not cached.
   */
  readonly #commands = new WeakMap<readonly LimitCharge[], ConsumeCommand>();
  #waiting: Waiting[] = [];
  /** Number of keys and bytes in the waiting commands. A command's text is ASCII, so its length in characters is its size in bytes. */
  #waitingKeys = 0;
  #waitingBytes = 0;
  /** Script calls in flight. */
  #underWay = 0;
  /** Number of requests in the last call. */
  #together = 0;

  readonly #clock: DeadlineClock;

  /** The caller owns the connection and closes it. */
  constructor(client: RedisClient, keys: RedisKeys, clock: DeadlineClock = new DeadlineClock()) {
    this.#client = client;
    this.#keys = keys;
    this.#counterKeys = new CounterKeys(keys);
    this.#clock = clock;
  }

  consume(request: ConsumeRequest, options: ConsumeOptions = {}): Promise<Consumed> {
    const caller = options.caller ?? { dueMs: performance.now() + WAIT_MS };
    return new Promise((resolve, reject) => {
      const command = this.#commandOf(request, options.dryRun === true);
      this.#enqueue({ command, caller, isSecond: false, resolve, reject });
    });
  }

  #enqueue(waiting: Waiting): void {
    const { keys, text } = waiting.command;
    const isTooMuch =
      this.#waitingKeys + keys.length > CONSUME_KEYS_MAX || this.#waitingBytes + text.length > CONSUME_TEXT_BYTES_MAX;
    if (isTooMuch && this.#waiting.length > 0) this.#sendWaiting();
    this.#waitingKeys += keys.length;
    this.#waitingBytes += text.length;
    const count = this.#waiting.push(waiting);
    if (count === CONSUME_REQUESTS_MAX) this.#sendWaiting();
    else if (count === 1 && this.#underWay === 0) this.#sendSoon();
  }

  #sendSoon(): void {
    if (this.#together <= 1) this.#sendWaiting();
    else {
      setImmediate(() => {
        if (this.#underWay === 0 && this.#waiting.length > 0) this.#sendWaiting();
      });
    }
  }

  async close(): Promise<void> {}

  #sendWaiting(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.#waitingKeys = 0;
    this.#waitingBytes = 0;
    this.#underWay += 1;
    this.#together = group.length;
    this.#send(group).then(
      ({ sent, replies }) => {
        this.#next();
        for (const [i, waiting] of sent.entries()) this.#respond(waiting, replies[i] ?? undefined);
      },
      (cause: unknown) => {
        this.#next();
        for (const { reject } of group) reject(new CountersUnavailable("counting in Redis", { cause }));
      },
    );
  }

  #next(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0 && this.#waiting.length > 0) this.#sendSoon();
  }

  /** Sends those requests of a group whose callers are still waiting. Errors reject the promise; the method never throws synchronously. */
  async #send(group: readonly Waiting[]): Promise<{ sent: readonly Waiting[]; replies: Replies }> {
    let sentAtMs = performance.now();
    if (this.#clock.deadlineOf(sentAtMs, sentAtMs) === undefined) {
      await this.#clock.measure(this.#client);
      sentAtMs = performance.now();
    }
    const sent = group.filter((waiting) => waiting.caller.dueMs > sentAtMs || giveUp(waiting));
    if (sent.length === 0) return { sent, replies: [] };
    const replies = await this.#run(sent, sentAtMs);
    const storeMs = replies.find((reply) => reply !== null)?.[0];
    if (storeMs !== undefined) this.#clock.observe({ sentAtMs, receivedAtMs: performance.now(), storeMs });
    return { sent, replies };
  }

  async #run(group: readonly Waiting[], nowMs: number): Promise<Replies> {
    // Returns the deadline of a request: 0 while the clock is unknown, so that the script does nothing.
    const deadlineOf = ({ caller }: Waiting) => this.#clock.deadlineOf(caller.dueMs, nowMs) ?? 0;
    const argv: (string | number)[] = [];
    for (const { command } of group) argv.push(...command.keys);
    const numberOfKeys = argv.length;
    for (const { command } of group) argv.push(command.text);
    for (const waiting of group) argv.push(deadlineOf(waiting));
    const reply = await runScript(this.#client, CONSUME, numberOfKeys, argv);
    return JSON.parse(reply as string) as Replies;
  }

  #respond(waiting: Waiting, reply: readonly number[] | undefined): void {
    const { command, caller, isSecond, resolve, reject } = waiting;
    if (reply === undefined) reject(new CountersUnavailable(scriptFailed(command.keys)));
    else if (reply[1] !== TOO_LATE) resolve(readConsumed(reply, command));
    else if (isSecond || performance.now() >= caller.dueMs) giveUp(waiting);
    else this.#enqueue({ ...waiting, isSecond: true });
  }

  #commandOf(request: ConsumeRequest, dryRun: boolean): ConsumeCommand {
    const { limits, credits } = request;
    const isCacheable = !dryRun && credits === undefined && limits.at(-1)?.scope.kind !== "namespace";
    if (!isCacheable) return this.#makeCommand(request, dryRun);
    let command = this.#commands.get(limits);
    if (command === undefined) {
      command = this.#makeCommand(request, false);
      this.#commands.set(limits, command);
    }
    return command;
  }

  #makeCommand({ limits, credits }: ConsumeRequest, dryRun: boolean): ConsumeCommand {
    const counterKeys: string[] = [];
    const charges: CounterCharge[] = [];
    const durations: number[] = [];
    const counters: number[] = [];
    for (const charge of limits) {
      const { limit, durationMs, cost } = charge;
      const counterKey = this.#counterKeys.of(charge);
      let counter = counterKeys.indexOf(counterKey);
      if (counter === -1) {
        counter = counterKeys.push(counterKey) - 1;
        durations.push(durationMs);
      }
      charges.push({ counterKey, limit, durationMs, cost });
      counters.push(counter);
    }
    const spent = dryRun ? undefined : credits;
    const keys = spent === undefined ? counterKeys : this.#withCredits(counterKeys, spent);
    const text = consumeText({ durations, charges, counters, dryRun, credits: spent });
    return { keys, text, counterKeys, charges, spends: spent !== undefined, dryRun };
  }

  #withCredits(counterKeys: readonly string[], { workspaceId, keyId }: CreditCharge): string[] {
    const keys = this.#keys;
    const ofCredits = [keys.credits(workspaceId, keyId), keys.creditsDirty(workspaceId), keys.creditsLoad(workspaceId)];
    return [...counterKeys, ...ofCredits];
  }
}

/** Returns the error text for a failed script. The script replaces invalid counters, so it fails only if Redis rejects a write. */
export const scriptFailed = (keys: readonly string[]): string =>
  `counting in Redis: the script failed at ${keys.join(", ")}; see ACL LOG for what Redis refuses our user, and INFO memory for whether it is full`;

/** Reply of the script to a request whose deadline has passed. */
export const TOO_LATE = -1;

function giveUp({ reject }: Waiting): false {
  reject(new CountersUnavailable("counting in Redis: the caller's time is over, so nothing was counted"));
  return false;
}

interface ConsumeCommand {
  readonly keys: readonly string[];
  readonly text: string;
  readonly counterKeys: readonly string[];
  readonly charges: readonly CounterCharge[];
  readonly spends: boolean;
  readonly dryRun: boolean;
}

/** Converts the script's reply (whether all limits passed, and the counts before the call) into an outcome per charge. */
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

/** Converts a script's status: 0 unreached, 1 spent, 2 refused, 3 not loaded or closed. */
export function creditOutcome(status: number, remaining: number): CreditOutcome {
  if (status === 0) return { status: "unreached", remaining: remaining < 0 ? undefined : remaining };
  if (status === 1) return { status: "spent", remaining };
  if (status === 2) return { status: "refused", remaining };
  return { status: "unknown" };
}
