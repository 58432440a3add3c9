import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { LeaderWork } from "../../runtime/leader.ts";
import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import { type FoundSecret, keyOf, type ManifestObject, type ManifestSource } from "../../source/contract.ts";
import { secretNameIn } from "../raw-spec.ts";
import { wasReady } from "../status.ts";

/*
 * Whether the Secrets of ApiKeys are still there, one after the other, over and over. A watch would tell at once, but needs the right to
 * list all Secrets of a namespace; a look at one needs the right that the operator has, and reads the metadata alone.
 */

export interface SecretLooksOptions {
  readonly source: Pick<ManifestSource, "list" | "get" | "secrets">;
  /** Reconciles an ApiKey. */
  readonly add: (key: ObjectKey) => void;
  readonly log: Logger;
  /** How long a round takes; longer when there are so many Secrets that the gap would be shorter. */
  readonly roundMs?: number;
  readonly gapMs?: number;
}

/** A Secret that is deleted is noticed within this time, up to 50 of them. */
const ROUND_MS = 10_000;
/** At most five looks a second: a thousand Secrets take 200 s. */
const GAP_MS = 200;

export function startSecretLooks(options: SecretLooksOptions): LeaderWork {
  const { source, add, log, roundMs = ROUND_MS, gapMs = GAP_MS } = options;
  const stop = new AbortController();
  let isPaused = true;
  let failing = false;
  /** By the uid of an ApiKey: the key that its Secret named at the last look. */
  const seen = new Map<string, string | undefined>();

  async function look(key: ObjectKey): Promise<void> {
    const object = source.get("ApiKey", key);
    const name = object === undefined ? undefined : secretNameIn(object);
    // Others are reconciled again by themselves.
    if (object === undefined || name === undefined || !isSettled(object)) return;
    try {
      const found = await source.secrets.find(object, name);
      failing = false;
      const { uid } = object.metadata;
      if (isUnexpected(found, seen.get(uid))) add(key);
      if (found.state === "ours") seen.set(uid, found.keyId);
    } catch (error) {
      if (!failing) log.warn({ object: formatKey(key), err: error }, "a Secret cannot be looked at; trying again");
      failing = true;
    }
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined);

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      const settled = isPaused ? [] : source.list("ApiKey").filter(isSettled);
      const uids = new Set(settled.map(({ metadata }) => metadata.uid));
      for (const uid of seen.keys()) if (!uids.has(uid)) seen.delete(uid);
      const keys = settled.map(keyOf);
      for (const key of keys) {
        if (stop.signal.aborted || isPaused) break;
        await look(key);
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

const isSettled = (object: ManifestObject): boolean =>
  object.metadata.deletionTimestamp === undefined && wasReady(object);

/** Whether a Secret is not as an ApiKey that is Ready has it, or names another key than at the last look, if there was one. Pure. */
export const isUnexpected = (found: FoundSecret, seenKeyId: string | undefined): boolean =>
  found.state !== "ours" || found.keyId === undefined || (seenKeyId !== undefined && found.keyId !== seenKeyId);
