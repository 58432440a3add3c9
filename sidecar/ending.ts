import { setTimeout as sleep } from "node:timers/promises";

/*
 * How a gate ends without losing a request.
 *
 *   serving ──the pod ends──► draining ──the time is over, or the app is gone──► drained ──► closed
 *
 * While draining the gate is unready, so that no new clients are sent to it, but it goes on serving, because they hear of that late. Each
 * answer is the last of its connection. A connection that is closed between two requests may lose the next one, so idle ones are
 * closed only when drained.
 *
 * A native sidecar gets its signal when the app has ended, which is too late for all this: the hook that Kubernetes calls when the pod
 * begins to end (`preStop`) begins it. For another sidecar the signal does.
 */

const LOOK_EVERY_MS = 100;

export interface EndingOptions {
  readonly drainMs: number;
  /** Whether nothing can be served any more. Asked while draining for a signal. */
  readonly isAppGone: () => Promise<boolean>;
  /** Closes the connections that are idle. */
  readonly closeIdle: () => void;
}

export class Ending {
  readonly #options: EndingOptions;
  /** By `performance.now()`; undefined while serving. */
  #beganMs: number | undefined;

  constructor(options: EndingOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#beganMs !== undefined;
  }

  /** Begins to drain. Another call has no effect. */
  begin(): void {
    if (this.#beganMs !== undefined) return;
    this.#beganMs = performance.now();
    const { drainMs, closeIdle } = this.#options;
    if (drainMs > 0) setTimeout(closeIdle, drainMs).unref();
  }

  /** Begins to drain, if that has not begun, and resolves when it is over. */
  async drained(): Promise<void> {
    this.begin();
    const { drainMs, isAppGone } = this.#options;
    const overAtMs = (this.#beganMs ?? 0) + drainMs;
    while (performance.now() < overAtMs && !(await isAppGone())) {
      await sleep(Math.max(0, Math.min(LOOK_EVERY_MS, overAtMs - performance.now())));
    }
  }
}
