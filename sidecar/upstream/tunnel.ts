import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { InFlight, InFlightSet } from "../http/in-flight.ts";

/** A socket or an HTTP/2 stream at one end of a tunnel. */
type End = Duplex & { readonly bytesRead: number };

/** Maximum times without a byte in either direction of a tunnel. */
export interface TunnelWaits {
  /** Maximum idle time while both sides are open; 0 means no limit. */
  readonly tunnelIdleMs: number;
  /**
   * Maximum idle time after one side has half-closed. That side may in fact have disconnected, and some apps do not close their own side in
   * response.
   */
  readonly halfClosedMs: number;
}

/** An upgraded connection: two joined sockets or streams, either of which may half-close. */
export class Tunnel implements InFlight {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: InFlight["admission"];
  readonly #ends: readonly [End, End];
  readonly #waits: TunnelWaits;
  /** Last observed state: bytes received from both sides, whether one side has half-closed, and the time of the last change. */
  #seen = { bytes: -1, isHalfClosed: false, sinceMs: 0 };

  constructor(
    a: End,
    b: End,
    inFlight: InFlightSet,
    from: Pick<InFlight, "startedMs" | "admission">,
    waits: TunnelWaits,
  ) {
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
        inFlight.remove(this);
        // After a regular end, the pipe has already forwarded the end. Otherwise this side was lost, and the other cannot continue.
        if (!from_.readableEnded) to.destroy();
      });
      from_.pipe(to);
    }
    for (const end of this.#ends) if (end instanceof Socket) setQuiet(end);
  }

  abortIfStalled(nowMs: number): void {
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

/** Disables HTTP timeouts and enables TCP keepalive probes, which detect a lost peer. */
function setQuiet(socket: Socket): void {
  socket.setTimeout(0);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
}
