import { setTimeout as sleep } from "node:timers/promises";

export type WaitOptions = { deadlineMs?: number; everyMs?: number };

/**
 * Calls `probe` repeatedly until it returns something other than `undefined` or `false`, and returns that.
 * A probe that throws counts as "not yet". After `deadlineMs` (default 10 s) it throws an error that names `what`,
 * with the last thrown error as its cause.
 */
export async function waitFor<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  { deadlineMs = 10_000, everyMs = 25 }: WaitOptions = {},
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  let lastError: unknown;
  for (;;) {
    try {
      const response = await probe();
      if (response !== undefined && response !== false) return response;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= giveUpAt) {
      const because = lastError instanceof Error ? `: ${lastError.message}` : "";
      throw new Error(`waited ${deadlineMs} ms in vain for ${what}${because}`, { cause: lastError });
    }
    await sleep(everyMs);
  }
}
