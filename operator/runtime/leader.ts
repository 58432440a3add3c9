import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { jitterMs } from "../../core/backoff.ts";
import { isKubeError, type KubeClient } from "./kube-client.ts";

/*
 * Leader election by a Lease (coordination.k8s.io):
 *
 *   follower   reads the Lease every 2 s. If the Lease has no holder, or has not changed for 15 s *by the monotonic clock of this
 *              process* (the clocks of two pods are never compared), the follower tries to take it → leader
 *   leader     renews the Lease every 2 s. 10 s after it sent the last successful renewal, or if the Lease names another holder
 *              → follower. These 10 s and the 2 s between two checks of the clock are less than 15 s, so the old leader stops
 *              before a new one starts
 *
 * Every write contains the resource version that was read, so two replicas cannot both take the Lease. The leader releases the Lease
 * on exit, so that the next replica need not wait. The transitions of the Lease are the fencing number of a term: a leader that was
 * frozen may still have a call on its way, which the API refuses after a call with a higher number.
 */

export interface LeaderOptions {
  readonly client: Pick<KubeClient, "send">;
  readonly namespace: string;
  readonly name: string;
  /** Identity of this process, such as the name of its pod. It must be unique to the process. */
  readonly identity: string;
  /** Called with the fencing number of the term, which is higher than that of every earlier term. */
  readonly onStarted: (fence: number) => void;
  readonly onStopped: () => void;
  readonly log: Logger;
  readonly timing?: { readonly leaseMs: number; readonly renewMs: number; readonly giveUpMs: number };
  /** Clock for durations. Default: the monotonic clock of the process. */
  readonly monotonicMs?: () => number;
}

export interface LeaderElection {
  readonly leading: boolean;
  /** Reason why no replica can become leader; `undefined` while the Lease can be read and written. */
  readonly problem: string | undefined;
  /** Ends the current term and begins another one with a higher fencing number, unless another replica takes the Lease first. */
  renew(): void;
  close(): Promise<void>;
}

/** Work of the leader, which is paused while another replica leads. */
export interface LeaderWork {
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

interface Lease {
  readonly metadata: { readonly resourceVersion: string };
  readonly spec: {
    readonly holderIdentity?: string;
    readonly renewTime?: string;
    readonly acquireTime?: string;
    readonly leaseTransitions?: number;
  };
}

const RELEASE_MS = 2_000;
export const LEASE_TIMING = { leaseMs: 15_000, renewMs: 2_000, giveUpMs: 10_000 };

export function startLeaderElection(options: LeaderOptions): LeaderElection {
  const { client, namespace, name, identity, log, timing = LEASE_TIMING } = options;
  const { monotonicMs = () => performance.now() } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const path = `${collection}/${name}`;
  const stop = new AbortController();
  let leading = false;
  /** Whether the API has received a higher fencing number than that of the current term. */
  let isSpent = false;
  let renewedAt = 0;
  let failing: { readonly error: unknown; readonly since: number } | undefined;
  let seen: { resourceVersion: string; at: number } | undefined;

  // Timeout of a request. A term has room for three attempts, because the first one may fail merely due to a dead connection.
  const deadlineMs = Math.round(timing.giveUpMs / 3);
  const isOver = () => monotonicMs() - renewedAt > timing.giveUpMs;

  /**
   * Begins or extends the term. `sentAt` is the time at which the renewal was sent. For other replicas, the term starts when the renewal
   * arrives, which may be long before this replica receives the response.
   */
  const lead = (sentAt: number, { spec }: Lease) => {
    renewedAt = sentAt;
    isSpent = false;
    if (isOver()) return follow();
    if (leading) return;
    leading = true;
    log.info({ lease: name }, "leadership acquired");
    options.onStarted(spec.leaseTransitions ?? 0);
  };
  const follow = () => {
    if (!leading) return;
    leading = false;
    log.warn({ lease: name }, "leadership lost; this replica stops writing");
    options.onStopped();
  };

  const leaseOf = (previous: Lease | undefined, holder: string) => {
    const now = microTime();
    const kept = previous?.spec.holderIdentity === identity && !isSpent;
    const transitions = previous === undefined ? minutes() : (previous.spec.leaseTransitions ?? 0) + (kept ? 0 : 1);
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      // Keeps labels and annotations that the installer has set, because it needs them to remove the Lease.
      metadata: { ...previous?.metadata, name, namespace },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: Math.ceil(timing.leaseMs / 1000),
        acquireTime: (kept ? previous?.spec.acquireTime : undefined) ?? now,
        renewTime: now,
        leaseTransitions: transitions,
      },
    };
  };

  const find = async (): Promise<Lease | undefined> => {
    try {
      return await client.send<Lease>({ method: "GET", path, signal: stop.signal, deadlineMs });
    } catch (error) {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    }
  };

  const write = (previous: Lease | undefined, holder: string, signal?: AbortSignal) =>
    client.send<Lease>({
      ...(previous === undefined ? { method: "POST", path: collection } : { method: "PUT", path }),
      body: leaseOf(previous, holder),
      deadlineMs,
      ...(signal === undefined ? {} : { signal }),
    });

  /** Returns whether the holder seems to be alive, because this process has seen the Lease change within the Lease's duration. */
  const isHeld = (lease: Lease): boolean => {
    const { resourceVersion } = lease.metadata;
    if (seen?.resourceVersion !== resourceVersion) seen = { resourceVersion, at: monotonicMs() };
    return Boolean(lease.spec.holderIdentity) && monotonicMs() - seen.at < timing.leaseMs;
  };

  async function attempt(): Promise<void> {
    const lease = await find();
    if (lease !== undefined && lease.spec.holderIdentity !== identity && isHeld(lease)) return follow();
    if (isSpent) follow();
    const sentAt = monotonicMs();
    try {
      lead(sentAt, await write(lease, identity, stop.signal));
    } catch (error) {
      // Another replica has taken the Lease first. The next round reads which one.
      if (!isKubeError(error, 409)) throw error;
    }
  }

  async function campaign(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await attempt();
        failing = undefined;
      } catch (error) {
        if (stop.signal.aborted) return;
        failing = { error, since: failing?.since ?? monotonicMs() };
        log.warn({ lease: name, err: error }, "lease cannot be renewed; retrying");
        if (isOver()) follow();
      }
      await sleep(jitterMs(timing.renewMs, 0.2, Math.random), undefined, { signal: stop.signal }).catch(
        () => undefined,
      );
    }
  }

  // Checks the end of the term with a timer, because a request without a response must not extend the term.
  const guard = setInterval(() => {
    if (isOver()) follow();
  }, timing.renewMs);
  const campaigning = campaign();

  return {
    get leading() {
      return leading;
    },
    get problem() {
      if (failing === undefined) return undefined;
      const { error, since } = failing;
      // Temporary failures are retried, so they are reported only after one Lease duration. A missing permission or namespace does not go
      // away by itself, so it is reported immediately.
      const isFinal = [401, 403, 404].some((status) => isKubeError(error, status));
      if (!isFinal && monotonicMs() - since < timing.leaseMs) return undefined;
      return `the Lease ${namespace}/${name} cannot be renewed: ${error instanceof Error ? error.message : String(error)}`;
    },
    renew: () => {
      isSpent = true;
    },
    close: async () => {
      clearInterval(guard);
      stop.abort();
      await campaigning;
      follow();
      // Releases the Lease even as a follower: the last attempt to take the Lease may have succeeded although its response was lost.
      await release().catch((error: unknown) =>
        log.warn({ lease: name, err: error }, "lease cannot be released; the next leader waits until it expires"),
      );
    },
  };

  async function release(): Promise<void> {
    // Limits the time for the release, because an unresponsive cluster must not delay the exit. Without a release, the Lease expires by
    // itself.
    const signal = AbortSignal.timeout(RELEASE_MS);
    const lease = await client.send<Lease>({ method: "GET", path, signal });
    if (lease.spec.holderIdentity === identity) await write(lease, "", signal);
  }
}

/**
 * Returns the initial `leaseTransitions` of a new Lease: the minutes since 1970. If a Lease is deleted and created again, its numbers thus
 * continue above the earlier ones, unless the leader changed more than once a minute.
 */
const minutes = (): number => Math.floor(Date.now() / 60_000);

/** Returns the current time as a Kubernetes MicroTime, which requires six fractional digits. */
export const microTime = (): string => new Date().toISOString().replace("Z", "000Z");
