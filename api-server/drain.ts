import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { DirectFront } from "./plugins/direct-front.ts";

const QUIET_MS = 100;
const DRAIN_MS_MAX = 500;
const LOOK_EVERY_MS = 10;

/**
 * Lets clients leave their kept connections: a server that closes one between two requests may do so just when the next one
 * arrives, which is then lost without a response. Call it before the server listens; it returns the function that starts the
 * draining. While draining, requests are still accepted, and each response says that it is the last on its connection. Draining ends
 * when no request has arrived for a moment, or after half a second, when every busy connection has had such a response.
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
    while (performance.now() - lastRequestAt < QUIET_MS && performance.now() < giveUpAt) await sleep(LOOK_EVERY_MS);
  };
}
