import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Ongoing, OngoingSet } from "../http/ongoing.ts";

/** A socket, or a stream of HTTP/2. */
type End = Duplex & { readonly bytesRead: number };

/** How long a tunnel may be without a byte in either direction. */
export interface TunnelWaits {
  /** 0 means no limit. */
  readonly tunnelIdleMs: number;
  /** Once one end has ended its direction: it may be gone, and not every app ends its own then. */
  readonly halfClosedMs: number;
}

/** An upgraded connection: two ends joined in both directions. Either may end its direction alone. */
export class Tunnel implements Ongoing {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Ongoing["admission"];
  readonly #ends: readonly [End, End];
  readonly #waits: TunnelWaits;
  /** Bytes received from both and whether one has ended its direction, and when either last changed. */
  #seen = { bytes: -1, isHalfClosed: false, sinceMs: 0 };

  constructor(a: End, b: End, ongoing: OngoingSet, from: Pick<Ongoing, "startedMs" | "admission">, waits: TunnelWaits) {
    this.#waits = waits;
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
    const [a, b] = this.#ends;
    const bytes = a.bytesRead + b.bytesRead;
    const isHalfClosed = a.readableEnded || b.readableEnded;
    const { tunnelIdleMs, halfClosedMs } = this.#waits;
    const waitMs = isHalfClosed ? halfClosedMs : tunnelIdleMs;
    if (bytes !== this.#seen.bytes || isHalfClosed !== this.#seen.isHalfClosed)
      this.#seen = { bytes, isHalfClosed, sinceMs: nowMs };
    else if (waitMs > 0 && nowMs - this.#seen.sinceMs > waitMs) this.cut();
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
