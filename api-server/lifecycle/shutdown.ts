import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { DirectFront } from "../plugins/direct-front.ts";

const QUIET_MS = 100;
const DRAIN_MS_MAX = 500;
const POLL_INTERVAL_MS = 10;

/**
 * Prepares a graceful drain of keep-alive connections. If a server closed idle connections right away, it could do so just as the next
 * request arrives, which would then be lost without a response. Call this before the server listens; it returns the function that starts
 * draining. While draining, requests are still accepted, and each response carries `Connection: close`. Draining ends when no request has
 * arrived for a short time, or after 0.5 s, by when every busy connection has had such a response.
 */
export function prepareDrain(
  server: Server,
  direct: Pick<DirectFront, "lastRequestMs" | "stop"> | undefined,
): () => Promise<void> {
  let isDraining = false;
  let lastRequestAt = Number.NEGATIVE_INFINITY;
  server.prependListener("request", (_request, response) => {
    lastRequestAt = performance.now();
    if (isDraining) response.setHeader("connection", "close");
  });
  return async () => {
    isDraining = true;
    direct?.stop();
    lastRequestAt = Math.max(lastRequestAt, direct?.lastRequestMs() ?? lastRequestAt);
    const giveUpAt = performance.now() + DRAIN_MS_MAX;
    while (performance.now() - lastRequestAt < QUIET_MS && performance.now() < giveUpAt) await sleep(POLL_INTERVAL_MS);
  };
}

/** Waits for `work`, but at most `ms` milliseconds. Ignores the result of `work`. */
export async function atMost(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([tooLate, Promise.resolve(work).catch(() => undefined)]);
  clearTimeout(timer);
}
