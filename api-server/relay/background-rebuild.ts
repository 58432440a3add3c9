import type { Logger } from "pino";
import type { Gauge } from "prom-client";
import type { Closeable } from "../../edge/closeable.ts";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import type { DatabaseUrl } from "../../postgres/pool.ts";
import { connectWorker } from "./leadership.ts";
import { type RebuildOptions, rebuild, rebuildWorkspace } from "./rebuild.ts";

/**
 * Minimum interval between two projections of the same workspace. It limits the load if the workspace's data in Redis repeatedly becomes
 * invalid.
 */
const WORKSPACE_AGAIN_MS = 15_000;

export interface BackgroundRebuildOptions {
  readonly databaseUrl: DatabaseUrl;
  readonly writer: RecordWriter;
  readonly credits: CreditStore;
  readonly log: Logger;
  readonly rebuilt: Gauge;
  /** Called after a failure. The next call of `throwIfFailed` rethrows the error. */
  readonly onFailed: () => void;
}

/**
 * Repeats projections in the background while the relay continues: either the projection of all records or, one workspace at a time, those
 * of workspaces whose projections were restarted. Workspaces wait while a full projection is in progress.
 */
export class BackgroundRebuild implements Closeable {
  readonly #options: BackgroundRebuildOptions;
  /** Workspaces that must be projected again. */
  readonly #waiting = new Set<string>();
  readonly #startedAtMs = new Map<string, number>();
  #isFullReadRequested = false;
  #stop = new AbortController();
  #running: Promise<void> | undefined;
  #failure: unknown;

  constructor(options: BackgroundRebuildOptions) {
    this.#options = options;
  }

  /** Whether a full projection is in progress. */
  get isComplete(): boolean {
    return this.#isFullReadRequested;
  }

  /** Starts the full projection, unless it is in progress. */
  ensure(projectionId: string): void {
    this.#isFullReadRequested = true;
    this.#running ??= this.#run(projectionId);
  }

  /** Projects the given workspaces again, unless they are already queued. */
  ensureWorkspaces(projectionId: string, workspaceIds: readonly string[]): void {
    if (workspaceIds.length === 0) return;
    for (const id of workspaceIds) this.#waiting.add(id);
    this.#running ??= this.#run(projectionId);
  }

  /**
   * Rethrows a background failure, which ends the leadership of this process, like a failure of the relay loop. The next leader continues
   * where this one stopped.
   */
  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Cancels running work and waits until it has ended. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#stop = new AbortController();
    this.#waiting.clear();
    this.#isFullReadRequested = false;
  }

  async #run(projectionId: string): Promise<void> {
    const { databaseUrl, rebuilt, onFailed } = this.#options;
    const { signal } = this.#stop;
    try {
      await this.#work({
        ...this.#options,
        projectionId,
        signal,
        connect: () => connectWorker(databaseUrl),
        onProgress: (records) => rebuilt.set(records),
        onBegun: (workspaceIds) => {
          for (const id of workspaceIds) this.#waiting.add(id);
        },
      });
    } catch (error) {
      // Redis contains another projection. Stops here, because the relay loop also detects this, and begins a new projection.
      if (!(error instanceof ProjectionChanged) && !signal.aborted) {
        this.#failure = error;
        onFailed();
      }
    } finally {
      this.#running = undefined;
      this.#isFullReadRequested = false;
    }
  }

  async #work(options: RebuildOptions): Promise<void> {
    while (!options.signal.aborted) {
      const [workspaceId] = this.#waiting;
      if (this.#isFullReadRequested) {
        await rebuild(options);
        this.#isFullReadRequested = false;
      } else if (workspaceId !== undefined) {
        this.#waiting.delete(workspaceId);
        await this.#rebuildOne(options, workspaceId);
      } else return;
    }
  }

  async #rebuildOne(options: RebuildOptions, workspaceId: string): Promise<void> {
    const startedAtMs = this.#startedAtMs.get(workspaceId) ?? Number.NEGATIVE_INFINITY;
    // Skips the workspace for now. A later heartbeat reports the workspace again, because its projection is still incomplete.
    if (performance.now() - startedAtMs < WORKSPACE_AGAIN_MS) return;
    this.#startedAtMs.set(workspaceId, performance.now());
    await rebuildWorkspace(options, workspaceId);
  }
}
