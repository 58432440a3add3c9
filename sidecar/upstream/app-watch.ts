import { connect } from "node:net";
import { guardRun, type OnInternalError } from "../../http/http1/guard.ts";

/*
 * Tracks whether the app accepts connections, based on the connections that the gate opens for requests.
 *
 *   unknown ──connected──► there ──refused──► away ──connected──► there
 *
 * An app that has never accepted a connection may still be starting. Such an app does not make the gate unready, because some apps are
 * started only once the gate is ready. In state `away`, the gate polls the app, because an unready gate receives no requests that would
 * open connections.
 */

const POLL_INTERVAL_MS = 250;
const POLL_MS_MAX = 1_000;

export type AppState = "unknown" | "there" | "away";

export class AppWatch {
  readonly #origin: URL;
  readonly #onInternalError: OnInternalError;
  readonly #listeners: Array<() => void> = [];
  #state: AppState = "unknown";
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(origin: URL, onInternalError: OnInternalError) {
    this.#origin = origin;
    this.#onInternalError = onInternalError;
  }

  get state(): AppState {
    return this.#state;
  }

  /** Called each time the app becomes unavailable. */
  onUnavailable(listener: () => void): void {
    this.#listeners.push(listener);
  }

  connected(): void {
    this.#state = "there";
  }

  failed(error: unknown): void {
    const isRefusal = error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
    if (!isRefusal || this.#state !== "there" || this.#isClosed) return;
    this.#state = "away";
    this.#pollLater();
    for (const listener of this.#listeners) guardRun(listener, this.#onInternalError);
  }

  /** Opens and closes a connection to check the app. Resolves when the state is known. */
  async look(): Promise<void> {
    const { hostname, port, protocol } = this.#origin;
    const host = hostname.replace(/^\[|\]$/g, "");
    const number = Number(port === "" ? (protocol === "https:" ? 443 : 80) : port);
    await new Promise<void>((resolve) => {
      const socket = connect({ host, port: number, timeout: POLL_MS_MAX });
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

  #pollLater(): void {
    this.#timer = setTimeout(() => {
      void this.look().then(() => {
        if (this.#state === "away" && !this.#isClosed) this.#pollLater();
      });
    }, POLL_INTERVAL_MS);
    this.#timer.unref();
  }
}
