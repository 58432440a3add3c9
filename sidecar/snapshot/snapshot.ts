import type { Logger } from "pino";
import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import { RELEASE } from "../../core/release.ts";
import type { KnownRecord, Projection } from "../../edge/projection/contract.ts";
import { within } from "../../edge/redis/script.ts";
import { fromContents, type RestoredKnowledge, toSlices } from "./contents.ts";
import { readSnapshotFile, writeSnapshotFile } from "./file.ts";
import { hostMoment } from "./host-clock.ts";
import { SEAL_BYTES, type Seal, Sealer, unseal } from "./seal.ts";

/*
 * What a gate knows, kept on scratch disk of its pod, so that after a restart it can serve known keys while the shared store is away.
 * docs/decisions/0023-a-snapshot-on-the-pod.md says what it may be used for, and against what it is protected.
 *
 * It is written when there is something newer to say: every 10 s, and after a second when a record that it may hold has changed; more
 * rarely when it is large. While the store is away nothing newer is known, so the file stays as it is and ages.
 */

/** A key with its share of other records takes some 700 bytes, so this is room for some 20,000 of them. The pod's volume has room for two. */
export const SNAPSHOT_BYTES_MAX = 16 * 1024 * 1024;
export const SECRET_CHARACTERS_MIN = 32;

const LOOK_EVERY_MS = 1_000;
const WRITE_EVERY_MS = 10_000;
/** On average, so that many gates on one node do not fill its disk's bandwidth. */
const BYTES_PER_MS = 1024;
/** A disk that stands still delays the start by no more than this, and the end. */
const DISK_WAIT_MS = 1_000;

export interface SnapshotConfig {
  readonly directory: string;
  /** Of at least `SECRET_CHARACTERS_MIN` characters; only this pod's gates have it, now and after a restart. */
  readonly secret: string;
  readonly workspaceId: string;
  readonly policyId: string;
  /** Of the keys in the shared store. */
  readonly prefix: string;
  readonly logger: Pick<Logger, "info" | "warn">;
}

export interface Snapshot {
  /** What an earlier process of this pod knew; undefined without one, or when its file cannot be used. */
  readonly restored: RestoredKnowledge | undefined;
  /** Writes what is known from now on, until it is closed. */
  keep(known: KnownHere): KeptSnapshot;
}

export interface KnownHere {
  readonly projection: Projection;
  /** The policy in force, as long as the store has it and this release can enforce it. */
  readonly policy: () => PolicyRecord | undefined;
  /** The shared store's clock, Unix ms. */
  readonly storeNowMs: () => number;
  readonly podsAlive: () => number;
}

export interface KeptSnapshot {
  readonly counts: SnapshotCounts;
  /** Writes once more what is newer than the file; waits no longer than a second for the disk. */
  close(): Promise<void>;
}

export interface SnapshotCounts {
  readonly writes: { written: number; failed: number };
  /** Of the last one that was written. */
  records: number;
  bytes: number;
  leftOut: number;
}

/** Reads what an earlier process left. Never throws, and takes no longer than a second and the time to read what was found. */
export async function openSnapshot(config: SnapshotConfig): Promise<Snapshot> {
  const { logger, directory } = config;
  const seal = { secret: config.secret, owner: [RELEASE, config.prefix, config.workspaceId, config.policyId] };
  let restored: RestoredKnowledge | undefined;
  let problem: string | undefined;
  try {
    const bytes = await within(DISK_WAIT_MS, readSnapshotFile(directory, SNAPSHOT_BYTES_MAX + SEAL_BYTES));
    const contents = bytes && unseal(bytes, seal);
    restored = contents && fromContents(contents, hostMoment());
    if (bytes !== undefined && contents === undefined)
      problem = "it is not of this gate and release, or not whole, or was changed";
    else if (contents !== undefined && restored === undefined) problem = "how old it is cannot be known";
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  if (problem !== undefined) logger.warn({ directory, problem }, "the snapshot on disk is not used");
  if (restored !== undefined) {
    const stalenessMs = Math.round(restored.stalenessMs());
    logger.info({ directory, stalenessMs }, "beginning with the snapshot on disk");
  }
  return { restored, keep: (known) => new Keeper({ ...config, ...known, seal }) };
}

interface KeeperOptions extends SnapshotConfig, KnownHere {
  readonly seal: Seal;
}

class Keeper implements KeptSnapshot {
  readonly counts: SnapshotCounts = { writes: { written: 0, failed: 0 }, records: 0, bytes: 0, leftOut: 0 };
  readonly #options: KeeperOptions;
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> | undefined;
  #forgotten = 0;
  #cached = 0;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  /** By our monotonic clock, as of when the file on disk is right. */
  #asOfMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
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
    const pauseMs = Math.max(hasChanged ? LOOK_EVERY_MS / 2 : WRITE_EVERY_MS, this.counts.bytes / BYTES_PER_MS);
    if (this.#writing !== undefined || sinceMs < pauseMs) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    const { projection, policy, directory, seal, storeNowMs, podsAlive, logger } = this.#options;
    const forgotten = projection.forgotten();
    const known = projection.isRestored() ? undefined : projection.known();
    const taken = hostMoment();
    if (known === undefined || taken === undefined) return;
    const asOfMs = performance.now() - known.stalenessMs;
    const { records: cached } = projection.cacheSizes();
    // Ages are of clocks that drift against one another; heartbeats come each second.
    const isNewer = asOfMs > this.#asOfMs + LOOK_EVERY_MS / 2;
    if (!isNewer && forgotten === this.#forgotten && cached === this.#cached) return;
    this.#triedAtMs = performance.now();
    const written = { records: 0, bytes: 0, leftOut: 0 };
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
      if (this.#isFailing) logger.info({ directory }, "the snapshot on disk is written again");
      this.#isFailing = false;
    } catch (error) {
      this.counts.writes.failed += 1;
      if (!this.#isFailing)
        logger.warn({ directory, err: error }, "the snapshot cannot be written; an earlier one stays");
      this.#isFailing = true;
    }
  }
}

/** The cache may have evicted the record of the policy, and holds those of policies that are not enforced. */
function* withPolicy(records: Iterable<KnownRecord>, policy: PolicyRecord | undefined): Iterable<KnownRecord> {
  if (policy !== undefined) yield { kind: "policy", id: policy.policyId, value: policy };
  for (const record of records) if (record.kind !== "policy") yield record;
}

function* sealed(slices: Iterable<string>, seal: Seal): Iterable<Buffer> {
  const sealer = new Sealer(seal);
  yield sealer.head;
  for (const slice of slices) yield sealer.add(slice);
  yield sealer.end();
}
