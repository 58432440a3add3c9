import { connect } from "node:net";
import { guardRun, type OnFault } from "../../http1/guard.ts";

/*
 * Whether the app takes connections, learned from those that the gate makes for requests.
 *
 *   unknown ──connected──► there ──refused──► away ──connected──► there
 *
 * An app that was never there may still be starting, which is no reason for the gate to be unready: an app may be started only when
 * the gate is ready. While it is away, the gate looks by itself for its return, because an unready gate gets no requests.
 */

const LOOK_EVERY_MS = 250;
const LOOK_MS_MAX = 1_000;

export type AppState = "unknown" | "there" | "away";

export class AppWatch {
  readonly #origin: URL;
  readonly #onFault: OnFault;
  readonly #listeners: Array<() => void> = [];
  #state: AppState = "unknown";
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(origin: URL, onFault: OnFault) {
    this.#origin = origin;
    this.#onFault = onFault;
  }

  get state(): AppState {
    return this.#state;
  }

  /** Called each time the app goes away. */
  onAway(listener: () => void): void {
    this.#listeners.push(listener);
  }

  connected(): void {
    this.#state = "there";
  }

  failed(error: unknown): void {
    const isRefusal = error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
    if (!isRefusal || this.#state !== "there" || this.#isClosed) return;
    this.#state = "away";
    this.#lookLater();
    for (const listener of this.#listeners) guardRun(listener, this.#onFault);
  }

  /** Makes a connection and closes it. Resolves when the state is known. */
  async look(): Promise<void> {
    const { hostname, port, protocol } = this.#origin;
    const host = hostname.replace(/^\[|\]$/g, "");
    const number = Number(port === "" ? (protocol === "https:" ? 443 : 80) : port);
    await new Promise<void>((resolve) => {
      const socket = connect({ host, port: number, timeout: LOOK_MS_MAX });
      socket.once("connect", () => {
        this.connected();
        socket.destroy();
      });
      socket.on("error", (error) => this.failed(error));
      socket.once("timeout", () => socket.destroy());
      socket.once("close", () => resolve());
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #lookLater(): void {
    this.#timer = setTimeout(() => {
      void this.look().then(() => {
        if (this.#state === "away" && !this.#isClosed) this.#lookLater();
      });
    }, LOOK_EVERY_MS);
    this.#timer.unref();
  }
}
