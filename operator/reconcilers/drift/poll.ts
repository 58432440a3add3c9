import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { jitterMs } from "../../../core/backoff.ts";
import type { Kind } from "../../../core/manifests/index.ts";
import type { ApiClient } from "../../api/client.ts";
import { listAll } from "../../api/list-all.ts";
import type { LeaderWork } from "../../runtime/leader.ts";
import type { ObjectKey } from "../../runtime/object-key.ts";
import { createSideBySide } from "../../runtime/side-by-side.ts";
import { managerOf, type OperatorContext } from "../context.ts";
import { DIGESTED, type DigestedKind, type Settled } from "./synced-objects.ts";

/*
 * Reads one list of digests for all objects of a kind and workspace instead of making several calls per object. Reconciles only objects
 * whose stored state no longer matches their manifests.
 *
 * Workspaces are polled concurrently, so that an unresponsive workspace does not delay the others. While a list is unavailable, its objects
 * are read individually when their resync is due.
 */

export interface DigestPollOptions {
  readonly ctx: Pick<OperatorContext, "synced" | "workspaces" | "cluster" | "resyncMs" | "nowMs">;
  /** Queues an object for a reconcile. */
  readonly add: (kind: Kind, key: ObjectKey) => void;
  readonly log: Logger;
}

/** Maximum poll interval. Drift is detected within this time. */
const POLL_MS = 60_000;

export function startDigestPoll({ ctx, add, log }: DigestPollOptions): LeaderWork {
  const stop = new AbortController();
  const asking = createSideBySide<ApiClient>();
  /** API clients whose last poll failed. Only the first of several consecutive failures is logged. */
  const failing = new Set<ApiClient>();
  // Polls at least twice per resync period, so that an object was checked shortly before its resync is due.
  const pollMs = Math.min(POLL_MS, ctx.resyncMs / 2);
  let isPaused = true;

  async function ask(api: ApiClient, members: ReadonlyMap<DigestedKind, readonly Settled[]>): Promise<void> {
    try {
      for (const [kind, synced] of members) {
        const atMs = ctx.nowMs();
        const listed = await listAll(api, "managed.listDigests", { kind: DIGESTED[kind], cluster: ctx.cluster });
        const digests = new Map(listed.map(({ manager, digest }) => [manager, digest]));
        for (const one of synced) {
          if (ctx.synced.show(one, digests.get(managerOf(ctx, one.object)), atMs)) add(kind, one.object.metadata);
        }
      }
      failing.delete(api);
    } catch (error) {
      if (stop.signal.aborted) return;
      if (!failing.has(api)) log.warn({ err: error }, "digests cannot be listed; objects are compared one by one");
      failing.add(api);
    }
  }

  function round(): void {
    const byApi = new Map<ApiClient, Map<DigestedKind, Settled[]>>();
    for (const kind of Object.keys(DIGESTED) as DigestedKind[]) {
      for (const synced of ctx.synced.list(kind)) {
        const api = ctx.workspaces.resolve(synced.object.metadata.namespace).workspace?.api;
        if (api === undefined) continue;
        const members = byApi.get(api) ?? new Map<DigestedKind, Settled[]>();
        byApi.set(api, members);
        const ofKind = members.get(kind) ?? [];
        members.set(kind, ofKind);
        ofKind.push(synced);
      }
    }
    for (const [api, members] of byApi) asking.start(api, () => ask(api, members));
    for (const api of failing) if (!byApi.has(api)) failing.delete(api);
  }

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      await sleep(jitterMs(pollMs, 0.1, Math.random), undefined, { signal: stop.signal }).catch(() => undefined);
      if (!stop.signal.aborted && !isPaused) round();
    }
  }

  const following = follow();
  return {
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
    },
    close: async () => {
      stop.abort();
      await following;
      await asking.done();
    },
  };
}
