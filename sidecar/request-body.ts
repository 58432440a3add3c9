import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";

/**
 * The body of a request on its way to the app. It stands between the two because a client library ends the stream it is
 * given, and ending an `IncomingMessage` closes the connection on which the answer has yet to be sent.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage;
  /** `performance.now()` of the last byte that came, or at which the app was last ready for more. */
  movedMs = performance.now();
  /** The app wants more than the client has sent. */
  isHungry = false;

  constructor(request: IncomingMessage) {
    super({ highWaterMark: 64 * 1024 });
    this.#request = request;
    // Whoever sends the body may have gone by the time that the client breaks off.
    this.on("error", () => {});
    request.on("data", this.#onData);
    request.on("end", this.#onEnd);
    request.on("error", this.#onBroken);
    request.on("close", this.#onBroken);
    request.pause();
  }

  override _read(): void {
    this.isHungry = true;
    this.movedMs = performance.now();
    this.#request.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#request.off("data", this.#onData);
    this.#request.off("end", this.#onEnd);
    this.#request.off("close", this.#onBroken);
    callback(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.movedMs = performance.now();
    if (this.push(chunk)) return;
    this.isHungry = false;
    this.#request.pause();
  };

  readonly #onEnd = (): void => {
    this.isHungry = false;
    this.push(null);
  };

  readonly #onBroken = (): void => {
    if (!this.#request.complete) this.destroy(new Error("the client broke off"));
  };
}

const DRAIN_IDLE_MS = 10_000;

/**
 * Reads the rest of a body that nobody wants, so that the client, which may not look for an answer before it has sent
 * everything, gets to read it. Past `bytesMax`, or when nothing comes for ten seconds, the connection is closed.
 */
export function drainBody(request: IncomingMessage, bytesMax: number): void {
  if (request.complete) return;
  let bytes = 0;
  // Node closes a connection that is silent for so long; with the next request it sets the timeout anew.
  request.socket.setTimeout(DRAIN_IDLE_MS);
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) request.socket.destroy();
  });
  request.on("error", () => {});
  request.resume();
}
