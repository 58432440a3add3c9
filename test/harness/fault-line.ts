import type { Socket } from "node:net";
import { type Line, openLine } from "./line.ts";

/**
 * Disturbance of open and new connections:
 *
 *   latency   each chunk is delayed in both directions
 *   loss      every tenth chunk and those behind it are delayed by 300 ms, as by a retransmission
 *   reset     each connection is reset
 *   halfOpen  connections are accepted and stay open without data
 *   slow      data is read in chunks of 256 bytes, twenty per second
 *   unread    connections are accepted and never read, so that the sender's buffers fill up
 *   cut       each connection is reset after the first 100 bytes of its next response
 *   garbage   each response of the server is replaced by text of another protocol
 *   empty     each response is replaced by `response`
 */
export type LineFault =
  | { readonly kind: "latency"; readonly ms: number }
  | { readonly kind: "loss" | "reset" | "halfOpen" | "slow" | "unread" | "cut" | "garbage" }
  | { readonly kind: "empty"; readonly response: string };

/** A TCP proxy that disturbs the forwarded data. */
export interface FaultLine extends Line {
  /** Sets the disturbance of new and open connections; `undefined` ends it. */
  disturb(fault: LineFault | undefined): void;
}

const LOSS_EVERY = 10;
const LOSS_MS = 300;
const SLOW = { bytes: 256, everyMs: 50 };
const CUT_BYTES = 100;

/** `url` is the URL of the proxied server; only its address is replaced. */
export async function openFaultLine(url: string): Promise<FaultLine> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let fault: LineFault | undefined;
  const carriers = new Set<Carrier>();

  const line = await openLine(url, (near, reach) => {
    if (fault?.kind === "reset") return void near.resetAndDestroy();
    const far = reach();
    near.setNoDelay(true);
    const pair = [near, far] as const;
    const ways = [new Carrier(near, far, () => fault, false), new Carrier(far, near, () => fault, true)];
    pairs.add(pair);
    for (const way of ways) carriers.add(way);
    const over = (): void => {
      pairs.delete(pair);
      for (const way of ways) carriers.delete(way);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) socket.on("close", over);
  });
  return {
    ...line,
    disturb: (next) => {
      fault = next;
      if (next?.kind === "reset") for (const [near] of pairs) near.resetAndDestroy();
      for (const carrier of carriers) carrier.wake();
    },
  };
}

/** One direction of a connection: chunks in order, delayed by the disturbance active at their arrival. */
class Carrier {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #fault: () => LineFault | undefined;
  readonly #isAnswers: boolean;
  readonly #waiting: { bytes: Buffer; dueMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #pieces = 0;

  constructor(from: Socket, to: Socket, fault: () => LineFault | undefined, isAnswers: boolean) {
    this.#from = from;
    this.#to = to;
    this.#fault = fault;
    this.#isAnswers = isAnswers;
    from.on("data", (bytes: Buffer) => {
      this.#pieces += 1;
      this.#waiting.push({ bytes: this.#changed(bytes), dueMs: performance.now() + this.#delayMs() });
      this.wake();
    });
    this.wake();
  }

  #delayMs(): number {
    const fault = this.#fault();
    if (fault?.kind === "latency") return fault.ms;
    return fault?.kind === "loss" && this.#pieces % LOSS_EVERY === 0 ? LOSS_MS : 0;
  }

  #changed(bytes: Buffer): Buffer {
    const fault = this.#fault();
    if (!this.#isAnswers) return bytes;
    if (fault?.kind === "garbage") return Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    return fault?.kind === "empty" ? Buffer.from(fault.response) : bytes;
  }

  wake(): void {
    clearTimeout(this.#timer);
    if (!this.#isAnswers && this.#fault()?.kind === "unread") this.#from.pause();
    else this.#from.resume();
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      const fault = this.#fault();
      if (fault?.kind === "halfOpen") return;
      if (fault?.kind === "cut" && this.#isAnswers) {
        this.#to.write(next.bytes.subarray(0, CUT_BYTES), () => this.#to.resetAndDestroy());
        this.#waiting.length = 0;
        return;
      }
      const inMs = next.dueMs - performance.now();
      if (inMs > 0) {
        this.#timer = setTimeout(() => this.wake(), inMs);
        return;
      }
      if (fault?.kind === "slow") {
        this.#write(next.bytes.subarray(0, SLOW.bytes));
        next.bytes = next.bytes.subarray(SLOW.bytes);
        if (next.bytes.length === 0) this.#waiting.shift();
        this.#timer = setTimeout(() => this.wake(), SLOW.everyMs);
        return;
      }
      this.#write(next.bytes);
      this.#waiting.shift();
    }
  }

  #write(bytes: Buffer): void {
    if (this.#to.writable) this.#to.write(bytes);
  }
}
