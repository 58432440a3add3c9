import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Ongoing, OngoingSet } from "../http/ongoing.ts";

/** A socket, or a stream of HTTP/2. */
type End = Duplex & { readonly bytesRead: number };

/** An upgraded connection: two ends joined in both directions. Either may end its direction alone. */
export class Tunnel implements Ongoing {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Ongoing["admission"];
  readonly #ends: readonly [End, End];
  readonly #idleMs: number;
  /** Bytes received from both, and when that number last grew. */
  #received = { bytes: -1, sinceMs: 0 };

  /** `idleMs`: the longest time without a byte in either direction; 0 means no limit. */
  constructor(
    a: End,
    b: End,
    ongoing: OngoingSet,
    { idleMs, ...from }: Pick<Ongoing, "startedMs" | "admission"> & { readonly idleMs: number },
  ) {
    this.#idleMs = idleMs;
    this.startedMs = from.startedMs;
    this.checkedMs = from.startedMs;
    this.admission = from.admission;
    this.#ends = [a, b];
    for (const [from_, to] of [
      [a, b],
      [b, a],
    ] as const) {
      from_.on("error", () => to.destroy());
      from_.on("close", () => {
        ongoing.remove(this);
        // A normal end was passed on by the pipe; after any other end the other side cannot continue.
        if (!from_.readableEnded) to.destroy();
      });
      from_.pipe(to);
    }
    for (const end of this.#ends) if (end instanceof Socket) setQuiet(end);
  }

  breakIfStalled(nowMs: number): void {
    if (this.#idleMs === 0) return;
    const bytes = this.#ends[0].bytesRead + this.#ends[1].bytesRead;
    if (bytes !== this.#received.bytes) this.#received = { bytes, sinceMs: nowMs };
    else if (nowMs - this.#received.sinceMs > this.#idleMs) this.cut();
  }

  cut(): void {
    for (const end of this.#ends) end.destroy();
  }
}

const KEEP_ALIVE_PROBE_MS = 30_000;

/** HTTP timeouts no longer apply; TCP's own probes find a peer that vanished. */
function setQuiet(socket: Socket): void {
  socket.setTimeout(0);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
}
