import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { ApiClient } from "../../api/client.ts";
import { listAll } from "../../api/list-all.ts";
import type { LeaderWork } from "../../runtime/leader.ts";
import type { ObjectKey } from "../../runtime/object-key.ts";
import { createSideBySide } from "../../runtime/side-by-side.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { managerOf, type OperatorContext } from "../context.ts";
import type { ListedPolicy, PolicyReading } from "./policy-cache.ts";
import { type Pace, pollAfterMs, REST_MS } from "./poll-pace.ts";

/*
 * Polls one list of all policies of a workspace instead of making several calls per policy. Reconciles only policies that the list shows as
 * changed.
 *
 * Workspaces are polled concurrently, so that an unresponsive workspace does not delay the others. While the list of a workspace is
 * unavailable, its policies are read individually and completely. If the other calls succeed, their statuses are correct even without the
 * list; otherwise the statuses state the reason.
 */

export interface PolicyPollOptions {
  readonly ctx: OperatorContext;
  /** Queues a policy for a reconcile. */
  readonly add: (key: ObjectKey) => void;
  readonly observe?: (outcome: { readonly result: "success" | "error"; readonly durationMs: number }) => void;
  readonly log: Logger;
}

export interface PolicyPoll extends LeaderWork {
  /** Requests polling of a policy at this pace. */
  hurry(pace: Pace): void;
}

/** Average interval of full reads. They detect changes that the list does not show, such as an edit of a policy in the database. */
const FULL_READ_MS = 2_000;
const FULL_READS_MAX = 8;
/** Delay before a poll, so that policies that need one at about the same time share it. */
const GATHER_MS = 250;
const FAILED_MS = 60_000;

interface Member {
  readonly object: ManifestObject;
  readonly manager: string;
}

export function startPolicyPoll({ ctx, add, observe, log }: PolicyPollOptions): PolicyPoll {
  const stop = new AbortController();
  const asking = createSideBySide<ApiClient>();
  const failedAtMs = new Map<ApiClient, number>();
  let isPaused = true;
  let nextAtMs = Number.POSITIVE_INFINITY;
  let wake = new AbortController();
  let allowance = 0;
  let roundAtMs = ctx.nowMs();
  const restMs = Math.min(REST_MS, ctx.resyncMs);
  const afterMs = (paces: Iterable<Pace | undefined>) => pollAfterMs(paces, { nowMs: ctx.nowMs(), restMs });

  const schedule = (atMs: number) => {
    if (atMs >= nextAtMs) return;
    nextAtMs = atMs;
    wake.abort();
  };

  async function ask(api: ApiClient, members: readonly Member[]): Promise<void> {
    const atMs = ctx.nowMs();
    const startedAt = performance.now();
    let listedPolicies: ReadonlyMap<string, ListedPolicy>;
    try {
      listedPolicies = await listPolicies(api, ctx.cluster);
    } catch (error) {
      observe?.({ result: "error", durationMs: performance.now() - startedAt });
      if (stop.signal.aborted) return;
      const since = failedAtMs.get(api);
      if (since === undefined)
        log.warn({ err: error }, "policy statuses cannot be listed; policies are read one by one");
      if (since !== undefined && atMs - since < FAILED_MS) return;
      failedAtMs.set(api, atMs);
      for (const { object } of members) readAll(object.metadata);
      return;
    }
    observe?.({ result: "success", durationMs: performance.now() - startedAt });
    failedAtMs.delete(api);
    for (const { object, manager } of members) {
      if (ctx.policyCache.show(object.metadata, listedPolicies.get(manager), atMs)) add(object.metadata);
    }
  }

  const readAll = (key: ObjectKey) => {
    ctx.policyCache.forget(key);
    add(key);
  };

  /** Starts a poll in each workspace whose previous poll has ended. */
  function round(): void {
    const nowMs = ctx.nowMs();
    const policies = ctx.source.list("ApiKeyPolicy").filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const byApi = new Map<ApiClient, Member[]>();
    for (const object of policies) {
      const { workspace } = ctx.workspaces.resolve(object.metadata.namespace);
      if (workspace === undefined) continue;
      const { api } = workspace;
      const members = byApi.get(api) ?? [];
      byApi.set(api, members);
      members.push({ object, manager: managerOf(ctx, object) });
    }
    for (const [api, members] of byApi) asking.start(api, () => ask(api, members));
    for (const api of failedAtMs.keys()) if (!byApi.has(api)) failedAtMs.delete(api);
    pollOldest(nowMs);
    nextAtMs = nowMs + afterMs(ctx.policyCache.list().map(({ pace }) => pace));
  }

  /**
   * Reads the policies that were fully read longest ago. Their number is limited, so that the number of calls does not grow with the number
   * of policies.
   */
  function pollOldest(nowMs: number): void {
    allowance = Math.min(FULL_READS_MAX, allowance + (nowMs - roundAtMs) / FULL_READ_MS);
    roundAtMs = nowMs;
    for (const { observed } of duePolls(ctx.policyCache.list(), nowMs - ctx.resyncMs, Math.floor(allowance))) {
      allowance -= 1;
      readAll(observed.object.metadata);
    }
  }

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      wake = new AbortController();
      const waitMs = Math.max(0, Math.min(nextAtMs - ctx.nowMs(), REST_MS));
      await sleep(waitMs, undefined, { signal: AbortSignal.any([wake.signal, stop.signal]) }).catch(() => undefined);
      if (stop.signal.aborted || isPaused || ctx.nowMs() < nextAtMs) continue;
      round();
    }
  }

  const following = follow();
  return {
    pause: () => {
      isPaused = true;
      nextAtMs = Number.POSITIVE_INFINITY;
    },
    resume: () => {
      isPaused = false;
      schedule(ctx.nowMs() + GATHER_MS);
    },
    hurry: (pace) => {
      if (!isPaused) schedule(ctx.nowMs() + Math.max(GATHER_MS, afterMs([pace])));
    },
    close: async () => {
      stop.abort();
      await following;
      await asking.done();
    },
  };
}

/** Returns the poll results of all managed policies of this cluster, by manager. Throws the errors of `listAll`. */
async function listPolicies(api: ApiClient, cluster: string): Promise<Map<string, ListedPolicy>> {
  const found = new Map<string, ListedPolicy>();
  for (const listed of await listAll(api, "policies.listStatus", { cluster })) {
    if (listed.manager !== undefined) found.set(listed.manager, listed);
  }
  return found;
}

/**
 * Returns the first `max` entries whose last full read is older than `beforeMs`; `readings` is sorted by the time of the last full read.
 * Pure.
 */
export const duePolls = (readings: readonly PolicyReading[], beforeMs: number, max: number): readonly PolicyReading[] =>
  readings.filter(({ observed }) => observed.seenAtMs < beforeMs).slice(0, max);
