import type { Logger } from "pino";
import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import { RELEASE } from "../../core/release.ts";
import type { CachedEntry, Projection } from "../../edge/projection/contract.ts";
import { within } from "../../edge/redis/script.ts";
import { fromContents, type RestoredState, toSlices } from "./contents.ts";
import { readSnapshotFile, writeSnapshotFile } from "./file.ts";
import { hostTimestamp } from "./host-clock.ts";
import { SEAL_BYTES, type Seal, Sealer, unseal } from "./seal.ts";

/*
 * Keeps the gate state on the scratch disk of the pod, so that after a restart the gate can serve cached keys while the shared store is
 * unavailable. docs/decisions/0023-a-snapshot-on-the-pod.md describes the permitted use and the protection of a snapshot.
 *
 * The snapshot is written when newer state exists: every 10 s, or 1 s after a change of a record that it may contain, and less often if
 * it is large. While the store is unavailable, no newer state exists, so the file ages unchanged.
 */

/**
 * Maximum size of a snapshot, enough for about 20,000 keys: a key with its share of other records takes about 700 bytes. The pod's volume
 * has room for two files of this size.
 */
export const SNAPSHOT_BYTES_MAX = 16 * 1024 * 1024;
export const SECRET_CHARACTERS_MIN = 32;

const POLL_INTERVAL_MS = 1_000;
const WRITE_EVERY_MS = 10_000;
/** Maximum average write rate, so that many gates on one node do not exhaust its disk bandwidth. */
const BYTES_PER_MS = 1024;
/** Disk timeout at startup and shutdown. */
const DISK_WAIT_MS = 1_000;

export interface SnapshotConfig {
  readonly directory: string;
  /** Secret that only the gates of this pod share, even after a restart. It has at least `SECRET_CHARACTERS_MIN` characters. */
  readonly secret: string;
  readonly workspaceId: string;
  readonly policyId: string;
  /** Key prefix in the shared store. */
  readonly prefix: string;
  readonly logger: Pick<Logger, "info" | "warn">;
}

export interface Snapshot {
  /** State of an earlier process of this pod; `undefined` if the file is missing or unusable. */
  readonly restored: RestoredState | undefined;
  /** Starts to write the state periodically, until `close` is called. */
  keep(known: CacheContents): KeptSnapshot;
}

export interface CacheContents {
  readonly projection: Projection;
  /** Returns the active policy; `undefined` if it is deleted or this version cannot enforce it. */
  readonly policy: () => PolicyRecord | undefined;
  /** Returns the time of the shared store's clock, Unix ms. */
  readonly storeNowMs: () => number;
  readonly podsAlive: () => number;
}

export interface KeptSnapshot {
  readonly counts: SnapshotCounts;
  /** Writes the state if it is newer than the file, and waits at most one second for the disk. */
  close(): Promise<void>;
}

export interface SnapshotCounts {
  readonly writes: { written: number; failed: number };
  /** Number of records in the last written snapshot. */
  records: number;
  bytes: number;
  omitted: number;
}

/** Reads the snapshot of an earlier process. Never throws, and takes at most one second plus the time to parse the contents. */
export async function openSnapshot(config: SnapshotConfig): Promise<Snapshot> {
  const { logger, directory } = config;
  const seal = { secret: config.secret, owner: [RELEASE, config.prefix, config.workspaceId, config.policyId] };
  let restored: RestoredState | undefined;
  let problem: string | undefined;
  try {
    const bytes = await within(DISK_WAIT_MS, readSnapshotFile(directory, SNAPSHOT_BYTES_MAX + SEAL_BYTES));
    const contents = bytes && unseal(bytes, seal);
    restored = contents && fromContents(contents, hostTimestamp());
    if (bytes !== undefined && contents === undefined)
      problem = "it is not of this gate and release, or not whole, or was changed";
    else if (contents !== undefined && restored === undefined) problem = "how old it is cannot be known";
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  if (problem !== undefined) logger.warn({ directory, problem }, "the snapshot on disk is not used");
  if (restored !== undefined) {
    const stalenessMs = Math.round(restored.stalenessMs());
    logger.info({ directory, stalenessMs }, "starting with the snapshot on disk");
  }
  return { restored, keep: (known) => new Keeper({ ...config, ...known, seal }) };
}

interface KeeperOptions extends SnapshotConfig, CacheContents {
  readonly seal: Seal;
}

class Keeper implements KeptSnapshot {
  readonly counts: SnapshotCounts = { writes: { written: 0, failed: 0 }, records: 0, bytes: 0, omitted: 0 };
  readonly #options: KeeperOptions;
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> | undefined;
  #forgotten = 0;
  #cached = 0;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  /** Time at which the state in the file was current, as `performance.now()`. */
  #asOfMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), POLL_INTERVAL_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    const last = async (): Promise<void> => {
      await this.#writing;
      await this.#write();
    };
    await within(DISK_WAIT_MS, last()).catch(() => undefined);
  }

  #look(): void {
    const { projection } = this.#options;
    const sinceMs = performance.now() - this.#triedAtMs;
    const hasChanged = projection.forgotten() !== this.#forgotten;
    const pauseMs = Math.max(hasChanged ? POLL_INTERVAL_MS / 2 : WRITE_EVERY_MS, this.counts.bytes / BYTES_PER_MS);
    if (this.#writing !== undefined || sinceMs < pauseMs) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    const { projection, policy, directory, seal, storeNowMs, podsAlive, logger } = this.#options;
    const forgotten = projection.forgotten();
    const known = projection.isRestored() ? undefined : projection.known();
    const taken = hostTimestamp();
    if (known === undefined || taken === undefined) return;
    const asOfMs = performance.now() - known.stalenessMs;
    const { records: cached } = projection.cacheSizes();
    // The tolerance covers the drift between the two clocks from which ages are computed. It is less than the second between two
    // heartbeats.
    const isNewer = asOfMs > this.#asOfMs + POLL_INTERVAL_MS / 2;
    if (!isNewer && forgotten === this.#forgotten && cached === this.#cached) return;
    this.#triedAtMs = performance.now();
    const written = { records: 0, bytes: 0, omitted: 0 };
    const records = withPolicy(known.records, policy());
    const slices = toSlices(
      { ...known, records, taken, storeMs: storeNowMs(), podsAlive: podsAlive() },
      SNAPSHOT_BYTES_MAX,
      written,
    );
    try {
      await writeSnapshotFile(directory, sealed(slices, seal));
      Object.assign(this.counts, written);
      this.counts.writes.written += 1;
      this.#forgotten = forgotten;
      this.#cached = cached;
      this.#asOfMs = asOfMs;
      if (this.#isFailing) logger.info({ directory }, "the snapshot on disk can be written again");
      this.#isFailing = false;
    } catch (error) {
      this.counts.writes.failed += 1;
      if (!this.#isFailing)
        logger.warn({ directory, err: error }, "the snapshot cannot be written; the previous one stays");
      this.#isFailing = true;
    }
  }
}

/** Adds the active policy to the cached records, which may lack it. Omits all other policies, because the gate does not enforce them. */
function* withPolicy(records: Iterable<CachedEntry>, policy: PolicyRecord | undefined): Iterable<CachedEntry> {
  if (policy !== undefined) yield { kind: "policy", id: policy.policyId, value: policy };
  for (const record of records) if (record.kind !== "policy") yield record;
}

function* sealed(slices: Iterable<string>, seal: Seal): Iterable<Buffer> {
  const sealer = new Sealer(seal);
  yield sealer.head;
  for (const slice of slices) yield sealer.add(slice);
  yield sealer.end();
}
