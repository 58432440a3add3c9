import { type FSWatcher, watch } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

/** Interval of reads without an event, because events can be lost when the folder of a mounted Secret or ConfigMap is replaced. */
const RESCAN_MS = 5_000;
/** Delay after the first event of a change, so that several writes cause one read. */
const DEBOUNCE_MS = 20;

export interface Following {
  close(): Promise<void>;
}

/**
 * Calls `read` immediately, then after each event of the folder and every 5 s. Calls never overlap. Throws the error of the first call;
 * later failures are logged and retried.
 */
export async function followFolder(
  { dir, log }: { readonly dir: string; readonly log: Logger },
  read: () => Promise<void>,
): Promise<Following> {
  await read();
  const stop = new AbortController();
  let watcher: FSWatcher | undefined;
  let failure: string | undefined;
  let wake: () => void = () => undefined;

  const openWatcher = () => {
    if (watcher !== undefined) return;
    try {
      watcher = watch(dir, () => wake());
      watcher.on("error", () => {
        watcher?.close();
        watcher = undefined;
      });
    } catch (error) {
      log.warn({ dir, err: error }, "the folder cannot be watched; it is read every 5 s");
    }
  };

  /**
   * Runs `read`. Returns the text of its error, or `undefined` if it succeeds. Logs an error only if it differs from that of the previous
   * call.
   */
  async function failureOf(attempt: () => Promise<void>): Promise<string | undefined> {
    try {
      await attempt();
      return undefined;
    } catch (error) {
      const text = String(error);
      if (text !== failure) log.error({ dir, err: error }, "file rejected; its previous contents stay active");
      return text;
    }
  }

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      const woken = new AbortController();
      wake = () => woken.abort();
      openWatcher();
      await sleep(RESCAN_MS, undefined, { signal: AbortSignal.any([stop.signal, woken.signal]) }).catch(
        () => undefined,
      );
      if (woken.signal.aborted) await sleep(DEBOUNCE_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      if (stop.signal.aborted) return;
      failure = await failureOf(read);
    }
  }
  const following = follow();
  return {
    close: async () => {
      stop.abort();
      watcher?.close();
      await following;
    },
  };
}
