import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";

/*
 * Redis matches replies to commands only by their order. If a proxy loses one reply, each later command gets the reply of another command
 * until the connection closes. So, once a second, a connection in use is asked to echo a text. If the reply differs, the connection is
 * closed and reconnected.
 */

const EVERY_MS = 1_000;

/** Watches a connection until its client closes. An error reply is ignored, because the user may lack permission for PING. */
export function watchReplyOrder(connection: Redis, everyMs = EVERY_MS): void {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => clearInterval(timer);
  connection.on("ready", () => {
    stop();
    const { stream } = connection;
    let sent = -1;
    let waiting = 0;
    timer = setInterval(() => {
      // Skips the check if no new commands were sent, because then no reply can be mismatched. A check in flight may wait for the reply to
      // a later command.
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
