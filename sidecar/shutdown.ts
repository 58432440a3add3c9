import { setTimeout as sleep } from "node:timers/promises";

/*
 * Shuts a gate down without losing a request.
 *
 *   serving ──the pod terminates──► draining ──the time is over, or the app is unreachable──► drained ──► closed
 *
 * While draining the gate is unready, so that clients stop using it, but it continues to serve, because they learn of that late. Each
 * response is the last of its connection. Closing a connection between two requests may lose the next one, so idle connections are
 * closed only when drained.
 *
 * A native sidecar gets its signal when the app has terminated, which is too late: the `preStop` hook that Kubernetes calls when the pod
 * begins to terminate starts draining. For another sidecar the signal does.
 */

const POLL_INTERVAL_MS = 100;

export interface ShutdownOptions {
  readonly drainMs: number;
  /** Whether no request can be served because the app is unreachable. Called while draining after a signal. */
  readonly isAppUnreachable: () => Promise<boolean>;
  /** Closes idle connections. */
  readonly closeIdle: () => void;
}

export class Shutdown {
  readonly #options: ShutdownOptions;
  /** `performance.now()` when draining began; `undefined` while serving. */
  #beganMs: number | undefined;

  constructor(options: ShutdownOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#beganMs !== undefined;
  }

  /** Begins to drain. Further calls have no effect. */
  begin(): void {
    if (this.#beganMs !== undefined) return;
    this.#beganMs = performance.now();
    const { drainMs, closeIdle } = this.#options;
    if (drainMs > 0) setTimeout(closeIdle, drainMs).unref();
  }

  /** Begins to drain, if it has not begun, and resolves when it is over. */
  async drained(): Promise<void> {
    this.begin();
    const { drainMs, isAppUnreachable } = this.#options;
    const overAtMs = (this.#beganMs ?? 0) + drainMs;
    while (performance.now() < overAtMs && !(await isAppUnreachable())) {
      await sleep(Math.max(0, Math.min(POLL_INTERVAL_MS, overAtMs - performance.now())));
    }
  }
}
