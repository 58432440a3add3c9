import { QueryRefused } from "./contract.ts";

/** How many queries run at once. One workspace gets only a part of the places, so that its slow queries leave some to the others. */
export interface PlacesOptions {
  readonly total: number;
  readonly perWorkspace: number;
  readonly waitMsMax: number;
}

interface Waiting {
  readonly workspaceId: string;
  readonly start: () => void;
}

/** The places of this process for queries of analytics; those that find none wait in turn, for a bounded time. */
export class QueryPlaces {
  readonly #options: PlacesOptions;
  readonly #running = new Map<string, number>();
  #total = 0;
  #waiting: Waiting[] = [];

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** Runs `work` in a place. Throws QueryRefused when none becomes free in time, and the signal's reason when it is aborted before. */
  async run<T>(workspaceId: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    await this.#enter(workspaceId, signal);
    try {
      return await work();
    } finally {
      this.#leave(workspaceId);
    }
  }

  #enter(workspaceId: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#hasRoom(workspaceId)) {
      this.#count(workspaceId, 1);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
      };
      const waiting: Waiting = {
        workspaceId,
        start: () => {
          done();
          this.#count(workspaceId, 1);
          resolve();
        },
      };
      const aborted = () => {
        done();
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        done();
        reject(new QueryRefused("unavailable", "Too many queries are running. Try again."));
      }, this.#options.waitMsMax);
      signal?.addEventListener("abort", aborted, { once: true });
      this.#waiting.push(waiting);
    });
  }

  #leave(workspaceId: string): void {
    this.#count(workspaceId, -1);
    // The first that may run: one of a workspace that has its part already does not hold up the others.
    this.#waiting.find((waiting) => this.#hasRoom(waiting.workspaceId))?.start();
  }

  #hasRoom(workspaceId: string): boolean {
    const { total, perWorkspace } = this.#options;
    return this.#total < total && (this.#running.get(workspaceId) ?? 0) < perWorkspace;
  }

  #count(workspaceId: string, change: 1 | -1): void {
    const count = (this.#running.get(workspaceId) ?? 0) + change;
    if (count === 0) this.#running.delete(workspaceId);
    else this.#running.set(workspaceId, count);
    this.#total += change;
  }
}
