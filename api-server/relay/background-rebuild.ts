import type { Logger } from "pino";
import type { Gauge } from "prom-client";
import type { Closeable } from "../../edge/closeable.ts";
import type { CreditStore } from "../../edge/credits/contract.ts";
import { ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import type { DatabaseUrl } from "../store/database-url.ts";
import { connectWorker } from "./leadership.ts";
import { type RebuildOptions, rebuild, rebuildWorkspace } from "./rebuild.ts";

/** If a workspace's part of the store breaks repeatedly, it is projected again only at this interval. */
const WORKSPACE_AGAIN_MS = 15_000;

export interface BackgroundRebuildOptions {
  readonly databaseUrl: DatabaseUrl;
  readonly writer: RecordWriter;
  readonly credits: CreditStore;
  readonly log: Logger;
  readonly rebuilt: Gauge;
  /** Called when `throwIfFailed` will throw. */
  readonly onFailed: () => void;
}

/**
 * Makes projections in the background of the relay: the whole one, and, one after another, workspaces that began again on their
 * own. While the whole one is made, single ones wait.
 */
export class BackgroundRebuild implements Closeable {
  readonly #options: BackgroundRebuildOptions;
  /** Workspaces that must be projected again. */
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

  /** Makes the whole projection, unless that is in progress. */
  ensure(projectionId: string): void {
    this.#isWholeWanted = true;
    this.#running ??= this.#run(projectionId);
  }

  /** Projects these workspaces again, unless they are waiting for it already. */
  ensureWorkspaces(projectionId: string, workspaceIds: readonly string[]): void {
    if (workspaceIds.length === 0) return;
    for (const id of workspaceIds) this.#waiting.add(id);
    this.#running ??= this.#run(projectionId);
  }

  /** A failure here ends the lead, like a failure of the relay loop. The next leader continues where this one stopped. */
  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Cancels running work and waits for its end. */
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
      // The store holds another projection: the relay loop will find that too, and begin a new one.
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
    // Skipped for now; it is incomplete, so a later heartbeat reports it again.
    if (performance.now() - startedAtMs < WORKSPACE_AGAIN_MS) return;
    this.#startedAtMs.set(workspaceId, performance.now());
    await rebuildWorkspace(options, workspaceId);
  }
}
