import { setTimeout as sleep } from "node:timers/promises";
import type { FaultEntry, Journal } from "../journal.ts";
import { type FaultKind, type Plan, type PlannedFault, TENANT_FAULTS } from "../plan.ts";
import type { Random } from "../random.ts";
import type { Part } from "../world/part.ts";
import type { World } from "../world/world.ts";
import { attack } from "./attacker.ts";
import { callProcedure, outcomeOf } from "./calls.ts";
import type { Http } from "./http.ts";
import { BULK_WORKSPACE, bulkPermission, type Keys, permissionKey } from "./keys.ts";
import { sample } from "./samples.ts";

/*
 * Executes the plan. Faults may overlap, but a part has only one at a time: a second one meanwhile is skipped, and the journal
 * records that.
 */

const BULK_TIMEOUT_MS = 30_000;
/** An api-server waits for its stores when it starts; they may be down. */
const START_ATTEMPTS_MAX = 5;

export interface FaultOptions {
  readonly world: World;
  readonly http: Http;
  readonly journal: Journal;
  readonly keys: Keys;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly onInternalError: (fault: PlannedFault) => void;
}

/** Resolves when every fault is over. Throws when a part could not be brought back. */
export async function runFaults(plan: Plan, options: FaultOptions): Promise<void> {
  const runner = new FaultRunner(options);
  const startedMs = performance.now();
  const running: Array<Promise<void>> = [];
  for (const fault of plan.faults) {
    await sleep(Math.max(0, fault.atMs - (performance.now() - startedMs)), undefined, {
      signal: options.signal,
    }).catch(() => undefined);
    if (options.signal.aborted) break;
    options.onInternalError(fault);
    running.push(runner.run(fault));
  }
  await Promise.all(running);
}

interface Prepared {
  /** The affected part. */
  readonly target: string;
  /** Calls `begin` when the fault takes effect. */
  readonly carryOut: (begin: () => void) => Promise<void>;
}

class FaultRunner {
  readonly #options: FaultOptions;
  readonly #suffering = new Set<string>();

  constructor(options: FaultOptions) {
    this.#options = options;
  }

  async run(fault: PlannedFault): Promise<void> {
    const { journal } = this.#options;
    const { target, carryOut } = await this.#prepare(fault);
    let startedMs = Date.now();
    const entry = (more: { skipped?: string }): FaultEntry => {
      return { type: "fault", kind: fault.kind, target, startedMs, endedMs: Date.now(), ...more };
    };
    if (this.#suffering.has(target)) return journal.add(entry({ skipped: `${target} is away already` }));
    this.#suffering.add(target);
    try {
      await carryOut(() => {
        startedMs = Date.now();
      });
      journal.add(entry({}));
    } catch (error) {
      if (!CLIENT_FAULTS.has(fault.kind)) throw new Error(`${fault.kind} of ${target}`, { cause: error });
      journal.add(entry({ skipped: String(error) }));
    } finally {
      this.#suffering.delete(target);
    }
  }

  async #prepare(fault: PlannedFault): Promise<Prepared> {
    const { world, random, signal } = this.#options;
    const { redis, postgres } = world;
    const { kind, forMs } = fault;
    const onRedis = (carryOut: Prepared["carryOut"]): Prepared => ({ target: "redis", carryOut });
    switch (kind) {
      case "kill-api-server":
      case "kill-sidecar": {
        const part = await this.#choose(fault);
        return { target: part.name, carryOut: () => killAndStart(part, forMs) };
      }
      case "stop-api-server":
      case "stop-sidecar": {
        const part = await this.#choose(fault);
        return { target: part.name, carryOut: () => standStill(part, forMs) };
      }
      case "flush-redis":
        return onRedis(async () => void (await redis.raw.flushall()));
      case "restart-redis-with-aof":
        return onRedis(() => redis.restartWithAof(forMs));
      case "restart-redis-empty":
        return onRedis(() => redis.restartEmpty(forMs));
      case "restart-redis-from-snapshot":
        return onRedis((begin) => redis.restartFromSnapshot(forMs, begin));
      case "stop-redis":
        return onRedis(() => standStill(redis, forMs));
      case "abort-postgres":
        return {
          target: "postgres",
          carryOut: async () => {
            await postgres.abort();
            await sleep(forMs);
            await postgres.restart();
          },
        };
      case "bulk-change":
        return { target: BULK_WORKSPACE, carryOut: () => this.#changeInBulk() };
      case "attack":
        return { target: "attacker's prefix", carryOut: () => attack({ world, random, signal }, forMs) };
    }
  }

  async #choose({ kind, target }: PlannedFault): Promise<Part> {
    const { world, http } = this.#options;
    const list = kind.endsWith("sidecar") ? world.sidecars.map(({ part }) => part) : world.apiServers;
    const at = typeof target === "number" ? Math.min(list.length - 1, Math.floor(target * list.length)) : 0;
    const fallback = list[at];
    if (fallback === undefined) throw new Error(`there is nothing to ${kind}`);
    if (target !== "leader") return fallback;
    const states = await Promise.all(list.map((part) => sample(http, part)));
    return list[states.findIndex((state) => state?.leads === true)] ?? fallback;
  }

  /** Deletes a permission that every key of a workspace holds: thousands of links, in one statement. */
  async #changeInBulk(): Promise<void> {
    const { world, http, journal, keys, random } = this.#options;
    const { bulk } = keys;
    if (bulk.deleted === bulk.made) throw new Error("every one has been deleted");
    const permission = bulkPermission(bulk.deleted);
    bulk.deleted += 1;
    const part = random.pick(world.apiServers);
    const id = `torture/bulk/${permission}`;
    const result = await callProcedure(http, {
      ...{ part, workspace: world.workspaces[BULK_WORKSPACE], id, timeoutMs: BULK_TIMEOUT_MS },
      ...{ procedure: "permissions.deletePermission", body: { permission } },
    });
    const { outcome, status, requestId } = outcomeOf(result);
    if (outcome === "unsent") throw new Error("nobody listened");
    const { sentMs, answeredMs } = result;
    journal.add({
      ...{ type: "change", subject: "permission", id, workspace: BULK_WORKSPACE, key: permissionKey(permission) },
      ...{ change: { kind: "forbid" }, via: part.name, sentMs, answeredMs, outcome, status, requestId },
    });
  }
}

/** These are ordinary calls, and are affected by the other faults. */
const CLIENT_FAULTS: ReadonlySet<FaultKind> = new Set([...TENANT_FAULTS, "flush-redis"]);

async function killAndStart(part: Part, downMs: number): Promise<void> {
  await part.kill();
  await sleep(downMs);
  for (let attempt = 1; ; attempt++) {
    try {
      return await part.start();
    } catch (error) {
      // Like a kubelet: a process that exits because a store is down at its start is started again.
      if (attempt === START_ATTEMPTS_MAX) throw error;
      await sleep(500);
    }
  }
}

async function standStill(part: { pause(): void; resume(): void }, forMs: number): Promise<void> {
  part.pause();
  try {
    await sleep(forMs);
  } finally {
    part.resume();
  }
}
