import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";

/*
 * Redis matches replies to commands only by their order. If a proxy loses one reply, each later command gets the reply of another command
 * until the connection closes. Therefore each connection in use sends a text to echo, once a second. If the reply differs from the text,
 * the connection is closed and reconnected.
 */

const EVERY_MS = 1_000;

/** Watches a connection until its client closes. Ignores error replies, because the user may lack permission for PING. */
export function watchReplyOrder(connection: Redis, everyMs = EVERY_MS): void {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => clearInterval(timer);
  connection.on("ready", () => {
    stop();
    const { stream } = connection;
    let sent = -1;
    let waiting = 0;
    timer = setInterval(() => {
      // Skips the check if no commands were sent since the last one, because no reply can be mismatched then. If the last check has no
      // reply yet, sends another one, whose reply would go to the last check if a reply was lost.
      if (stream.bytesWritten === sent && waiting === 0) return;
      const text = randomUUID();
      waiting += 1;
      const evaluate = (repeated?: unknown): void => {
        waiting -= 1;
        const isOurs = repeated === undefined || String(repeated) === text;
        if (!isOurs && connection.stream === stream) connection.disconnect(true);
      };
      connection.ping(text).then(evaluate, () => evaluate());
      sent = stream.bytesWritten;
    }, everyMs);
    timer.unref();
  });
  connection.on("close", stop).on("end", stop);
}
