import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Range below the ephemeral ports of Linux and macOS, so that no outgoing connection takes the port before its server listens. */
const [MIN_PORT, MAX_PORT] = [20_000, 32_000];
const ATTEMPTS_MAX = 100;

/**
 * Returns a random TCP port on which nothing listens on 127.0.0.1. Another caller gets the same one with a chance of 1 in 12,000. Prefer port
 * 0 where possible. Throws the error of `listen` if 100 ports in a row are taken.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = randomInt(MIN_PORT, MAX_PORT);
    const server = createServer();
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
      server.close();
      await once(server, "close");
      return port;
    } catch (error) {
      if (attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
