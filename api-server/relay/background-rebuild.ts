import type { Logger } from "pino";
import type { Gauge } from "prom-client";
import type { Closeable } from "../../edge/closeable.ts";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import { connectWorker } from "./leadership.ts";
import { type RebuildOptions, rebuild, rebuildWorkspace } from "./rebuild.ts";

/** A workspace whose part of the store is broken again and again is projected anew only so often. */
const WORKSPACE_AGAIN_MS = 15_000;

export interface BackgroundRebuildOptions {
  readonly databaseUrl: string;
  readonly writer: RecordWriter;
  readonly credits: CreditStore;
  readonly log: Logger;
  readonly rebuilt: Gauge;
  /** Called when `throwIfFailed` will throw. */
  readonly onFailed: () => void;
}

/**
 * Makes projections beside the carrying of changes: the whole one, and one workspace after the other of those that were begun
 * anew by themselves. While the whole one is made, single ones wait.
 */
export class BackgroundRebuild implements Closeable {
  readonly #options: BackgroundRebuildOptions;
  /** Workspaces to be projected anew by themselves. */
  readonly #waiting = new Set<string>();
  readonly #startedAtMs = new Map<string, number>();
  #isWholeWanted = false;
  #stop = new AbortController();
  #running: Promise<void> | undefined;
  #failure: unknown;

  constructor(options: BackgroundRebuildOptions) {
    this.#options = options;
  }

  /** Whether the whole projection is being made. */
  get isWhole(): boolean {
    return this.#isWholeWanted;
  }

  /** Makes the whole projection, unless that is under way. */
  ensure(projectionId: string): void {
    this.#isWholeWanted = true;
    this.#running ??= this.#run(projectionId);
  }

  /** Projects these workspaces anew, unless they are waiting for it already. */
  ensureWorkspaces(projectionId: string, workspaceIds: readonly string[]): void {
    if (workspaceIds.length === 0) return;
    for (const id of workspaceIds) this.#waiting.add(id);
    this.#running ??= this.#run(projectionId);
  }

  /** A failure ends the lead, as that of the carrying does: the next one goes on where this one was. */
  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits for what is under way, which is given up. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#stop = new AbortController();
    this.#waiting.clear();
    this.#isWholeWanted = false;
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
      // The store holds another projection: the loop meets the same, and begins one anew.
      if (!(error instanceof ProjectionChanged) && !signal.aborted) {
        this.#failure = error;
        onFailed();
      }
    } finally {
      this.#running = undefined;
      this.#isWholeWanted = false;
    }
  }

  async #work(options: RebuildOptions): Promise<void> {
    while (!options.signal.aborted) {
      const [workspaceId] = this.#waiting;
      if (this.#isWholeWanted) {
        await rebuild(options);
        this.#isWholeWanted = false;
      } else if (workspaceId !== undefined) {
        this.#waiting.delete(workspaceId);
        await this.#rebuildOne(options, workspaceId);
      } else return;
    }
  }

  async #rebuildOne(options: RebuildOptions, workspaceId: string): Promise<void> {
    const startedAtMs = this.#startedAtMs.get(workspaceId) ?? Number.NEGATIVE_INFINITY;
    // Left alone for now; it is incomplete, so a later heartbeat asks for it again.
    if (performance.now() - startedAtMs < WORKSPACE_AGAIN_MS) return;
    this.#startedAtMs.set(workspaceId, performance.now());
    await rebuildWorkspace(options, workspaceId);
  }
}
