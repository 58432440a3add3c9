import { setTimeout as sleep } from "node:timers/promises";

/*
 * Shuts a gate down without losing a request.
 *
 *   serving ──the pod terminates──► draining ──the time is over, or the app is unreachable──► drained ──► closed
 *
 * While the gate drains, its readiness probe fails, so that clients stop using the gate. It still serves requests, because clients react
 * with a delay. It closes each connection after the current response. Idle connections are closed only when the gate is drained, because
 * closing a connection between two requests may lose the next request.
 *
 * A native sidecar receives its signal after the app has terminated, which is too late. Therefore the `preStop` hook, which Kubernetes
 * calls when the pod begins to terminate, starts draining. In any other sidecar the signal starts it.
 */

const POLL_INTERVAL_MS = 100;

export interface ShutdownOptions {
  readonly drainMs: number;
  /** Returns whether the app is unreachable, so draining can end early. Called while the gate drains after a signal. */
  readonly isAppUnreachable: () => Promise<boolean>;
  /** Closes idle connections. */
  readonly closeIdle: () => void;
}

export class Shutdown {
  readonly #options: ShutdownOptions;
  /** Time at which draining began, as `performance.now()`; `undefined` before then. */
  #beganMs: number | undefined;

  constructor(options: ShutdownOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#beganMs !== undefined;
  }

  /** Begins to drain; further calls have no effect. */
  begin(): void {
    if (this.#beganMs !== undefined) return;
    this.#beganMs = performance.now();
    const { drainMs, closeIdle } = this.#options;
    if (drainMs > 0) setTimeout(closeIdle, drainMs).unref();
  }

  /** Begins to drain if necessary, and resolves when draining is complete. */
  async drained(): Promise<void> {
    this.begin();
    const { drainMs, isAppUnreachable } = this.#options;
    const overAtMs = (this.#beganMs ?? 0) + drainMs;
    while (performance.now() < overAtMs && !(await isAppUnreachable())) {
      await sleep(Math.max(0, Math.min(POLL_INTERVAL_MS, overAtMs - performance.now())));
    }
  }
}
