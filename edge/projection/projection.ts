import type { PolicyRecord } from "../../core/policies/stored-policy.ts";
import { selectOverride } from "../../core/ratelimits/overrides.ts";
import type { NamespaceRecord, OverridePatternsRecord, OverrideRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { overrideRecordId, type RecordRef } from "../records.ts";
import type {
  ChangeListener,
  ChangeStream,
  Following,
  Known,
  Lookup,
  MaybePromise,
  Projection,
  RecordSource,
  RefusedKind,
  Restored,
  SourceState,
  StreamId,
} from "./contract.ts";
import { Freshness } from "./freshness.ts";
import { KeyViews } from "./key-views.ts";
import { type Outcome, RecordCache } from "./record-cache.ts";

/** Optional cache sizes and staleness limits. */
export interface ProjectionLimits {
  /** Maximum number of cached keys, each with the records that it refers to. Default: 20,000. */
  readonly views?: number;
  /** Maximum records. Default: 50,000. */
  readonly records?: number;
  /** Maximum number of cached negative entries. Default: 20,000. */
  readonly absences?: number;
  /** Approximate maximum memory of keys and records, in bytes. Default: unlimited. */
  readonly bytes?: number;
  /** Negative entries are used only while the workspace's change stream is at most this stale. Default: 30 s. */
  readonly negativeStalenessMs?: number;
  /**
   * If a workspace's change stream is staler than this, each use of a key reads the source, and the cache is used only while the source is
   * unusable. Meant for the api-server, whose source is Postgres. Default: never.
   */
  readonly bypassAfterMs?: number;
}

export interface ProjectionOptions {
  readonly source: RecordSource;
  readonly stream: ChangeStream;
  readonly follow: StreamId;
  readonly limits?: ProjectionLimits;
  /** State that an earlier process saved for the followed workspace. */
  readonly restored?: Restored | undefined;
  /** Maximum time that startup waits for the store, in ms. Default: 1 s. */
  readonly waitMs?: number | undefined;
}

/**
 * Opens a projection. Resolves even if the store is down, and keeps reconnecting. Every workspace can be read; changes come from `follow`.
 */
export async function openProjection(options: ProjectionOptions): Promise<Projection> {
  const projection = new CachedProjection(options);
  await projection.start(options);
  return projection;
}

class CachedProjection implements Projection, ChangeListener {
  readonly #stream: ChangeStream;
  readonly #freshness: Freshness;
  readonly #cache: RecordCache;
  readonly #views: KeyViews;
  readonly #bypassAfterMs: number;
  readonly #listeners = new Set<(ref: RecordRef | undefined) => void>();
  readonly #refused: Record<RefusedKind, number> = { state: 0, record: 0, entry: 0, heartbeat: 0 };
  /** Records that are read to test the source, if one workspace is followed; `undefined` on the global stream. */
  readonly #ownWorkspace: readonly RecordRef[] | undefined;
  #following: Following | undefined;
  readonly #workspaceId: string | undefined;

  constructor({ source, stream, follow, limits = {}, restored }: ProjectionOptions) {
    const { views = 20_000, records = 50_000, absences = 20_000, negativeStalenessMs = 30_000 } = limits;
    // A key with its derived data takes twice as much memory as its record.
    const { bytes = Number.POSITIVE_INFINITY } = limits;
    this.#stream = stream;
    if (follow !== "central") {
      this.#workspaceId = follow.workspaceId;
      this.#ownWorkspace = [{ ...follow, kind: "workspace", id: follow.workspaceId }];
    }
    this.#bypassAfterMs = limits.bypassAfterMs ?? Number.POSITIVE_INFINITY;
    this.#freshness = new Freshness({ storeNowMs: () => stream.storeNowMs(), restoredMs: restored?.stalenessMs });
    const usesNegativeEntry = (workspaceId: string) => this.stalenessMs(workspaceId) <= negativeStalenessMs;
    const onRefused = (what: RefusedKind) => this.onRefused(what);
    this.#cache = new RecordCache({ source, records, absences, bytes: bytes / 3, usesNegativeEntry, onRefused });
    this.#views = new KeyViews(this.#cache, { views, bytes: (2 * bytes) / 3 });
    if (follow === "central" || restored === undefined) return;
    for (const { length, ...record } of restored.records) this.#cache.restore(follow.workspaceId, record, length);
  }

  async start({ follow, restored, waitMs }: ProjectionOptions): Promise<void> {
    this.#following = await this.#stream.follow(follow, this, {
      ...(restored === undefined ? {} : { from: restored.position }),
      ...(waitMs === undefined ? {} : { waitMs }),
    });
  }

  onChange(ref: RecordRef): void {
    this.drop([ref]);
  }

  onReset(_reason: string, { forget } = { forget: false }): void {
    if (forget) this.forgetAll();
    this.#cache.reset();
    for (const listener of this.#listeners) listener(undefined);
    // Polls the source, because a gate without traffic must detect a recovered store too.
    void this.#cache.pollAgain(this.#ownWorkspace);
  }

  onHeartbeat(asOfMs: number, lagging?: ReadonlyMap<string, number>): void {
    if (!this.#freshness.observe(asOfMs, lagging)) this.onRefused("heartbeat");
    void this.#cache.pollAgain();
  }

  onRefused(what: RefusedKind): void {
    this.#refused[what] += 1;
  }

  findKey(workspaceId: string, hash: string): MaybePromise<Lookup<KeyView>> {
    return this.#views.find(workspaceId, hash, this.#bypasses(workspaceId));
  }

  findPolicy(workspaceId: string, policyId: string): MaybePromise<Lookup<PolicyRecord>> {
    return this.#find<PolicyRecord>({ workspaceId, kind: "policy", id: policyId });
  }

  findNamespace(workspaceId: string, namespaceId: string): MaybePromise<Lookup<NamespaceRecord>> {
    return this.#find<NamespaceRecord>({ workspaceId, kind: "namespace", id: namespaceId });
  }

  findNamespaceByName(workspaceId: string, name: string): MaybePromise<Lookup<NamespaceRecord>> {
    return this.#find<NamespaceRecord>({ workspaceId, kind: "namespaceName", id: name });
  }

  findOverride(workspaceId: string, namespaceId: string, identifier: string): MaybePromise<Lookup<OverrideRecord>> {
    const exactRef: RecordRef = { workspaceId, kind: "override", id: overrideRecordId(namespaceId, identifier) };
    const patternsRef: RecordRef = { workspaceId, kind: "overridePatterns", id: namespaceId };
    const select = ([ofExact, ofPatterns]: readonly Outcome[]): Lookup<OverrideRecord> => {
      const exact = this.#toLookup<OverrideRecord>(exactRef, ofExact);
      if (exact.status !== "absent") return exact;
      const patterns = this.#toLookup<OverridePatternsRecord>(patternsRef, ofPatterns);
      if (patterns.status !== "found") return patterns;
      const best = selectOverride(patterns.value.patterns, identifier);
      return best === undefined ? { status: "absent" } : { ...patterns, value: best };
    };
    const outcomes = this.#cache.get([exactRef, patternsRef], this.#bypasses(workspaceId));
    return outcomes instanceof Promise ? outcomes.then(select) : select(outcomes);
  }

  drop(refs: readonly RecordRef[]): void {
    for (const ref of refs) {
      this.#cache.drop(ref);
      this.#views.drop(ref);
      for (const listener of this.#listeners) listener(ref);
    }
  }

  cacheSizes(): { keys: number; records: number; absences: number } {
    return { keys: this.#views.size, ...this.#cache.sizes };
  }

  forgetAll(): void {
    this.#cache.forgetAll();
    this.#views.forgetAll();
    for (const listener of this.#listeners) listener(undefined);
  }

  stalenessMs(workspaceId?: string): number {
    return this.#freshness.stalenessMs(workspaceId);
  }

  streamStaleness(): { ms: number; laggingWorkspaces: number } {
    return this.#freshness.ofStream();
  }

  sourceState(): SourceState {
    return this.#cache.sourceState;
  }

  refused(): Readonly<Record<RefusedKind, number>> {
    return this.#refused;
  }

  known(): Known | undefined {
    const position = this.#following?.position();
    const stalenessMs = this.stalenessMs();
    if (this.#workspaceId === undefined || position === undefined || !Number.isFinite(stalenessMs)) return undefined;
    return { position, stalenessMs, records: this.#cache.known(this.#workspaceId) };
  }

  forgotten(): number {
    return this.#cache.forgotten;
  }

  isRestored(): boolean {
    return this.#freshness.isRestored;
  }

  onDropped(listener: (ref: RecordRef | undefined) => void): void {
    this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#following?.close();
  }

  #bypasses(workspaceId: string): boolean {
    return this.#bypassAfterMs !== Number.POSITIVE_INFINITY && this.stalenessMs(workspaceId) > this.#bypassAfterMs;
  }

  #find<T>(ref: RecordRef): MaybePromise<Lookup<T>> {
    const outcomes = this.#cache.get([ref], this.#bypasses(ref.workspaceId));
    return outcomes instanceof Promise
      ? outcomes.then(([outcome]) => this.#toLookup<T>(ref, outcome))
      : this.#toLookup<T>(ref, outcomes[0]);
  }

  #toLookup<T>(ref: RecordRef, read: Outcome | undefined): Lookup<T> {
    if (read === undefined) return UNREAD;
    const fallback = read.kind === "unusable" ? this.#cache.fallback(ref) : undefined;
    const outcome = fallback ?? read;
    if (outcome.kind === "unusable") {
      const { reason, isRefused } = outcome;
      return isRefused === undefined ? { status: "unusable", reason } : { status: "unusable", reason, isRefused };
    }
    if (outcome.kind === "missing" || outcome.record.state === "gone") return { status: "absent" };
    const found = { status: "found", value: outcome.record.value as T } as const;
    return fallback === undefined ? found : { ...found, stale: true };
  }
}

const UNREAD = { status: "unusable", reason: "the record was not read" } as const;
