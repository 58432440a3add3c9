import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { backoffMs, jitterMs } from "../../core/backoff.ts";
import { isKubeError, isSilence, type KubeClient, KubeError, type KubeList, type KubeObject } from "./kube-client.ts";

/*
 * A cache of one collection, which list and watch keep current:
 *
 *   listing    reads the complete collection, page by page → watching. After a failure → wait, with backoff → listing
 *   watching   watches from the resource version of the last list, event or bookmark. The server ends each watch after a few
 *              minutes, and a watch without a byte for `silenceMs` counts as dead → watching again from the same version.
 *              After 410 (the version is too old) → listing. After any other failure → wait → watching
 *
 * A list is compared with the cache, so that a deletion during a gap between watches is reported like any other.
 */

export interface ListWatchOptions {
  readonly client: KubeClient;
  /** Path of the collection: `/apis/<group>/<version>/namespaces/<ns>/<plural>`, or without the namespace for all namespaces. */
  readonly path: string;
  /** Label selector of the objects. An object that no longer matches counts as deleted. */
  readonly labelSelector?: string;
  /** Field selector of the objects, such as `metadata.name=NAME`. */
  readonly fieldSelector?: string;
  readonly onChange: (change: Change) => void;
  /** Returns an object with only the fields to cache, which include name, uid and resource version. Default: the complete object. */
  readonly trim?: (object: KubeObject) => KubeObject;
  readonly log: Logger;
  readonly silenceMs?: number;
}

/** Change of an object. `before` is missing for a new object, `after` for a deleted one. */
export interface Change {
  readonly before?: KubeObject;
  readonly after?: KubeObject;
}

export interface ListWatch {
  /** Resolves after the first complete list. */
  readonly listed: Promise<void>;
  get(namespace: string, name: string): KubeObject | undefined;
  list(): readonly KubeObject[];
  /** Caches an object from an API response, so that a write of this process is visible before the watch reports it. */
  put(object: KubeObject): void;
  close(): Promise<void>;
}

const PAGE = "500";
const WATCH_SECONDS = 290;
const SILENCE_MS = 100_000;
const RETRY = { firstMs: 200, maxMs: 30_000, random: Math.random };
/** Minimum duration of a successful watch; a shorter watch counts as failed. */
const SHORT_MS = 1_000;

export function startListWatch({
  client,
  path,
  labelSelector,
  fieldSelector,
  onChange,
  trim = (object) => object,
  log,
  silenceMs = SILENCE_MS,
}: ListWatchOptions): ListWatch {
  const cache = new Map<string, KubeObject>();
  const stop = new AbortController();
  const listed = Promise.withResolvers<void>();
  const report = client.watches.open(path);
  let resourceVersion = "";

  const keyOf = ({ metadata }: KubeObject) => `${metadata.namespace ?? ""}/${metadata.name}`;

  const put = (object: KubeObject) => {
    const before = cache.get(keyOf(object));
    if (before !== undefined && before.metadata.uid === object.metadata.uid && !isNewer(object, before)) return;
    cache.set(keyOf(object), object);
    onChange(before === undefined ? { after: object } : { before, after: object });
  };

  const remove = (object: KubeObject) => {
    const before = cache.get(keyOf(object));
    // The name may already belong to a newer object when the event about the old object's deletion arrives.
    if (before === undefined || before.metadata.uid !== object.metadata.uid) return;
    cache.delete(keyOf(object));
    onChange({ before });
  };

  async function list(): Promise<void> {
    const found = new Map<string, KubeObject>();
    let next: string | undefined;
    let listedVersion: string;
    do {
      const page: KubeList = await client.send({
        method: "GET",
        path,
        query: { limit: PAGE, continue: next, labelSelector, fieldSelector },
        signal: stop.signal,
      });
      for (const item of page.items) found.set(keyOf(item), trim(item));
      next = page.metadata.continue === "" ? undefined : page.metadata.continue;
      listedVersion = page.metadata.resourceVersion;
    } while (next !== undefined);
    // Sets the version only after the last page, because a list that fails between two pages must start again.
    resourceVersion = listedVersion;
    for (const [key, object] of [...cache]) if (!found.has(key)) remove(object);
    for (const object of found.values()) put(object);
    report.alive();
    listed.resolve();
  }

  async function watch(): Promise<void> {
    const query = {
      resourceVersion,
      labelSelector,
      fieldSelector,
      allowWatchBookmarks: "true",
      timeoutSeconds: String(Math.round(jitterMs(WATCH_SECONDS, 0.3, Math.random))),
    };
    const asked = { path, query, silenceMs, signal: stop.signal, onOpen: report.alive };
    for await (const { type, object } of client.watch(asked)) {
      if (type === "ERROR") throw toError(object);
      report.alive();
      resourceVersion = object.metadata.resourceVersion;
      if (type === "ADDED" || type === "MODIFIED") put(trim(object));
      else if (type === "DELETED") remove(object);
    }
  }

  async function follow(): Promise<void> {
    let failures = 0;
    while (!stop.signal.aborted) {
      const startedAt = performance.now();
      try {
        if (resourceVersion === "") await list();
        await watch();
        failures = 0;
      } catch (error) {
        if (stop.signal.aborted) return;
        if (isKubeError(error, 410)) resourceVersion = "";
        // If the watch worked for a while, the count of consecutive failures starts again.
        failures = performance.now() - startedAt > RETRY.maxMs ? 1 : failures + 1;
        if (!isSilence(error)) {
          report.failed(error);
          log.warn({ path, err: error, failures }, "watch failed; retrying");
        }
      }
      // Waits even if the watch ended normally. Otherwise a server that closes every watch at once would be flooded with requests.
      const waitMs =
        failures === 0 && performance.now() - startedAt > SHORT_MS ? 0 : backoffMs(Math.max(1, failures), RETRY);
      await sleep(waitMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  }

  const following = follow();
  return {
    listed: listed.promise,
    get: (namespace, name) => cache.get(`${namespace}/${name}`),
    list: () => [...cache.values()],
    put,
    close: async () => {
      stop.abort();
      await following;
      report.end();
    },
  };
}

/**
 * Returns whether one object is newer than another. Resource versions within a collection are increasing decimal numbers (KEP-5504), which
 * may exceed the precision of a double.
 */
function isNewer(object: KubeObject, than: KubeObject): boolean {
  return BigInt(object.metadata.resourceVersion) > BigInt(than.metadata.resourceVersion);
}

/** Converts the Status object in an ERROR event. The event contains it in place of the resource. */
function toError(status: object): KubeError {
  const { code = 500, reason = "", message = "" } = status as { code?: number; reason?: string; message?: string };
  return new KubeError(code, reason, message);
}
