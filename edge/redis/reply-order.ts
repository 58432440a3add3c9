import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";

/*
 * A reply belongs to a command by its place alone. When something between us and Redis loses one, each later command gets the reply of
 * another one, for as long as the connection lives. So a connection that is used is asked to repeat a text, once a second: when it
 * repeats anything else it is closed, and made again.
 */

const EVERY_MS = 1_000;

/** Watches a connection until its client ends. An error in place of the text is none of ours: a user may lack the right to PING. */
export function watchReplyOrder(connection: Redis, everyMs = EVERY_MS): void {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => clearInterval(timer);
  connection.on("ready", () => {
    stop();
    const { stream } = connection;
    let sent = -1;
    let waiting = 0;
    timer = setInterval(() => {
      // Nothing was sent, so there is nothing to mix up. One that waits may wait for the reply to a later command.
      if (stream.bytesWritten === sent && waiting === 0) return;
      const text = randomUUID();
      waiting += 1;
      const judge = (repeated?: unknown): void => {
        waiting -= 1;
        const isOurs = repeated === undefined || String(repeated) === text;
        if (!isOurs && connection.stream === stream) connection.disconnect(true);
      };
      connection.ping(text).then(judge, () => judge());
      sent = stream.bytesWritten;
    }, everyMs);
    timer.unref();
  });
  connection.on("close", stop).on("end", stop);
}
