import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const QUIET_MS = 100;
const DRAIN_MS_MAX = 500;
const LOOK_EVERY_MS = 10;

/**
 * Says goodbye to clients that keep their connections: a server that closes one between two requests may close it just as
 * the next one arrives, which then is lost without an answer. To be called before the server listens; returns what starts the
 * draining, during which requests are still taken and each answer says that it is the last on its connection. It ends when
 * nobody has asked anything for a moment, or after half a second, by when every busy connection has had such an answer.
 */
export function prepareDrain(server: Server): () => Promise<void> {
  let isDraining = false;
  let lastRequestAt = Number.NEGATIVE_INFINITY;
  server.prependListener("request", (_request, response) => {
    lastRequestAt = performance.now();
    if (isDraining) response.setHeader("connection", "close");
  });
  return async () => {
    isDraining = true;
    const giveUpAt = performance.now() + DRAIN_MS_MAX;
    while (performance.now() - lastRequestAt < QUIET_MS && performance.now() < giveUpAt) await sleep(LOOK_EVERY_MS);
  };
}
