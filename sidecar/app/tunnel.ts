import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Ongoing, OngoingSet } from "../http/ongoing.ts";

/** An upgraded connection: two sockets joined in both directions. Either may end its direction alone. */
export class Tunnel implements Ongoing {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Ongoing["admission"];
  readonly #ends: readonly [Duplex, Duplex];

  constructor(a: Duplex, b: Duplex, ongoing: OngoingSet, from: Pick<Ongoing, "startedMs" | "admission">) {
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
    for (const end of this.#ends) setQuiet(end as Socket);
  }

  /** A tunnel may be silent for as long as its two sides like. */
  breakIfStalled(): void {}

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
