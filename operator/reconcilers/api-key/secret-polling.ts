import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { LeaderWork } from "../../runtime/leader.ts";
import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import { type FoundSecret, keyOf, type ManifestObject, type ManifestSource } from "../../source/contract.ts";
import { secretNameIn } from "../raw-spec.ts";
import { wasReady } from "../status.ts";

/*
 * Checks in a loop whether the Secrets of ApiKeys still exist. A watch would be faster, but requires permission to list all Secrets of a
 * namespace. A check needs only a permission that the operator has in any case, and reads only metadata.
 */

export interface SecretPollingOptions {
  readonly source: Pick<ManifestSource, "list" | "get" | "secrets">;
  /** Queues an ApiKey for a reconcile. */
  readonly add: (key: ObjectKey) => void;
  readonly log: Logger;
  /** Time in which each Secret is checked once. It is longer if the pause between two checks would be shorter than `GAP_MS`. */
  readonly roundMs?: number;
  readonly gapMs?: number;
}

/** Time within which a deletion is detected, for up to 50 Secrets. */
const ROUND_MS = 10_000;
/** Minimum pause between checks: at five checks per second, 1,000 Secrets take 200 s. */
const GAP_MS = 200;

export function startSecretPolling(options: SecretPollingOptions): LeaderWork {
  const { source, add, log, roundMs = ROUND_MS, gapMs = GAP_MS } = options;
  const stop = new AbortController();
  let isPaused = true;
  let failing = false;
  /** Id of the key that each Secret contained at the last check, keyed by the uid of its ApiKey. */
  const seen = new Map<string, string | undefined>();

  async function poll(key: ObjectKey): Promise<void> {
    const object = source.get("ApiKey", key);
    const name = object === undefined ? undefined : secretNameIn(object);
    // Skips an object that is not in sync, because it is already in the queue.
    if (object === undefined || name === undefined || !isInSync(object)) return;
    try {
      const found = await source.secrets.find(object, name);
      failing = false;
      const { uid } = object.metadata;
      if (isUnexpected(found, seen.get(uid))) add(key);
      if (found.state === "ours") seen.set(uid, found.keyId);
    } catch (error) {
      if (!failing) log.warn({ object: formatKey(key), err: error }, "Secret cannot be read; retrying");
      failing = true;
    }
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined);

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      const synced = isPaused ? [] : source.list("ApiKey").filter(isInSync);
      const uids = new Set(synced.map(({ metadata }) => metadata.uid));
      for (const uid of seen.keys()) if (!uids.has(uid)) seen.delete(uid);
      const keys = synced.map(keyOf);
      for (const key of keys) {
        if (stop.signal.aborted || isPaused) break;
        await poll(key);
        await pause(Math.max(gapMs, roundMs / keys.length));
      }
      if (keys.length === 0) await pause(roundMs);
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
    },
  };
}

const isInSync = (object: ManifestObject): boolean =>
  object.metadata.deletionTimestamp === undefined && wasReady(object);

/** Returns whether a Secret differs from the state of a Ready ApiKey, or contains another key than at the last check. Pure. */
export const isUnexpected = (found: FoundSecret, seenKeyId: string | undefined): boolean =>
  found.state !== "ours" || found.keyId === undefined || (seenKeyId !== undefined && found.keyId !== seenKeyId);
