import type { ApiRecord, IdentityRecord, KeyRecord, RoleRecord, WorkspaceRecord } from "../../core/records.ts";
import { KeyView } from "../../core/verification/key-view.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { type RecordRef, refsOfKey } from "../records.ts";
import type { Lookup, MaybePromise } from "./contract.ts";
import type { CachedRecord, Outcome, RecordCache } from "./record-cache.ts";

/*
 * Keys with the records that they refer to. A view keeps the records from which it was made, and is valid while all of them are live. A
 * change of a role thus invalidates a single record, regardless of how many keys have the role, and each view detects the change when it is
 * used, by comparing one number.
 */

/** A cached view, which is itself the result of `find`. */
interface CachedView {
  readonly status: "found";
  readonly value: KeyView;
  readonly hash: string;
  readonly workspaceId: string;
  readonly parts: readonly CachedRecord[];
  readonly generation: number;
  /** The cache's change count when all records of the view were last found live. */
  checkedAt: number;
}

interface Loading {
  readonly startedAt: number;
  readonly lookup: Promise<Lookup<KeyView>>;
}

/** Minimum interval between retries of an unusable source, for keys that the cache can serve. */
const ASK_AGAIN_MS = 200;

export class KeyViews {
  readonly #cache: RecordCache;
  /**
   * Views by the number of their key's hash. Two workspaces never share a key, and a lookup with the wrong workspace finds no key. Two keys
   * with the same number, which are rare, replace each other.
   */
  readonly #views: BoundedCache<number, CachedView>;
  readonly #loading = new Map<string, Loading>();
  #unusableAtMs = Number.NEGATIVE_INFINITY;

  constructor(cache: RecordCache, { views, bytes }: { views: number; bytes: number }) {
    this.#cache = cache;
    this.#views = new BoundedCache(views, bytes);
  }

  get size(): number {
    return this.#views.size;
  }

  /** Returns a cached view synchronously. With `bypass`, returns a cached view only if the source cannot be read. */
  find(workspaceId: string, hash: string, bypass: boolean): MaybePromise<Lookup<KeyView>> {
    const cached = this.#views.get(numberOf(hash));
    const usable = cached?.hash === hash && cached.workspaceId === workspaceId && this.#isLive(cached);
    if (usable && !bypass && cached.generation === this.#cache.generation) return cached;
    // The view was created before the last reset, but all of its records are still live, so it is used until the next retry.
    if (usable && performance.now() - this.#unusableAtMs < ASK_AGAIN_MS) return { ...cached, stale: true };
    return this.#loadOnce(workspaceId, hash, bypass);
  }

  drop({ kind, id }: RecordRef): void {
    if (kind === "key") this.#views.delete(numberOf(id));
  }

  forgetAll(): void {
    this.#views.clear();
  }

  #isLive(cached: CachedView): boolean {
    const { changes } = this.#cache;
    if (cached.checkedAt === changes) return true;
    for (const part of cached.parts) if (!part.isLive) return false;
    cached.checkedAt = changes;
    return true;
  }

  /** Loads a key. A caller shares a load in flight, unless something has changed since that load began; in that case a new load starts. */
  #loadOnce(workspaceId: string, hash: string, bypass: boolean): Promise<Lookup<KeyView>> {
    const name = `${workspaceId}/${hash}`;
    const startedAt = this.#cache.changes;
    const known = this.#loading.get(name);
    if (known !== undefined && known.startedAt === startedAt && !bypass) return known.lookup;
    const loading = { startedAt, lookup: this.#load(workspaceId, hash, bypass) };
    this.#loading.set(name, loading);
    const done = () => {
      if (this.#loading.get(name) === loading) this.#loading.delete(name);
    };
    loading.lookup.then(done, done);
    return loading.lookup;
  }

  async #load(workspaceId: string, hash: string, bypass: boolean): Promise<Lookup<KeyView>> {
    const { generation, changes } = this.#cache;
    const read = await this.#get([{ workspaceId, kind: "key", id: hash }], bypass);
    const [keyOutcome = UNREAD] = read.outcomes;
    if (keyOutcome.kind === "unusable") return { status: "unusable", reason: keyOutcome.reason };
    if (keyOutcome.kind === "missing" || keyOutcome.record.state === "gone") return { status: "absent" };
    const key = keyOutcome.record.value as KeyRecord;
    if (key.workspaceId !== workspaceId)
      return { status: "unusable", reason: "the key's record is of another workspace" };

    const refs = refsOfKey(key);
    const { outcomes, isStale } = await this.#get(refs, bypass);
    const problem = refs.map((ref, i) => problemWith(ref, outcomes[i])).find((text) => text !== undefined);
    if (problem !== undefined) return { status: "unusable", reason: problem };

    const records = outcomes.flatMap((outcome) => (outcome.kind === "record" ? [outcome.record] : []));
    const valuesOf = (kind: RecordRef["kind"]) =>
      records
        .filter((_, i) => refs[i]?.kind === kind)
        .flatMap(({ state, value }) => (state === "found" ? [value] : []));
    const workspace = valuesOf("workspace")[0] as WorkspaceRecord | undefined;
    if (workspace === undefined) return { status: "absent" };
    const view = new KeyView({
      key,
      workspace,
      api: valuesOf("api")[0] as ApiRecord | undefined,
      identity: valuesOf("identity")[0] as IdentityRecord | undefined,
      roles: valuesOf("role") as RoleRecord[],
    });
    const parts = [keyOutcome.record, ...records];
    const stale = read.isStale || isStale;
    const found = { status: "found", value: view } as const;
    // If a change or reset occurred during the read, the view may be outdated, so it is used once and not cached.
    if (parts.every((part) => part.isLive)) {
      const madeIn = stale ? NEVER_FRESH : generation;
      const cached = { ...found, hash, workspaceId, parts, generation: madeIn, checkedAt: changes };
      this.#views.set(numberOf(hash), cached, bytesOf(parts));
    }
    return stale ? { ...found, stale } : found;
  }

  /** Reads the records, and uses cached ones in place of those that cannot be read. */
  async #get(refs: readonly RecordRef[], bypass: boolean): Promise<{ outcomes: Outcome[]; isStale: boolean }> {
    const outcomes = await this.#cache.get(refs, bypass);
    let isStale = false;
    for (const [i, ref] of refs.entries()) {
      if (outcomes[i]?.kind !== "unusable") continue;
      this.#unusableAtMs = performance.now();
      const fallback = this.#cache.fallback(ref);
      if (fallback === undefined) continue;
      outcomes[i] = fallback;
      isStale = true;
    }
    return { outcomes, isStale };
  }
}

const NEVER_FRESH = -1;

/**
 * Returns a number for a hash, from its last 8 characters. Looking up a number takes half the time of looking up a new string, because V8
 * first searches its table of all strings for the string.
 */
function numberOf(hash: string): number {
  let number = 0;
  for (let at = Math.max(0, hash.length - 8); at < hash.length; at++) {
    number = (Math.imul(number, 31) + hash.charCodeAt(at)) | 0;
  }
  return number;
}

/** Approximate memory use of a view in bytes, found by measurement. It includes derived limit plans, counter names and headers. */
const bytesOf = (parts: readonly CachedRecord[]): number =>
  1_500 + 4 * parts.reduce((sum, part) => sum + part.length, 0);
const UNREAD: Outcome = { kind: "unusable", reason: "the key was not read" };

/**
 * Returns why the view cannot be made. A missing record is such a reason, unlike a deleted one: a role that is not projected yet must not
 * count as a role without permissions.
 */
function problemWith(ref: RecordRef, outcome: Outcome | undefined): string | undefined {
  if (outcome === undefined || outcome.kind === "missing") return `the key's ${ref.kind} is not projected`;
  if (outcome.kind === "unusable") return outcome.reason;
  return undefined;
}
