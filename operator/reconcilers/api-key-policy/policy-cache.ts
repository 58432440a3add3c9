import { isDeepStrictEqual } from "node:util";
import type { Data } from "../../../core/api/procedures.ts";
import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { toDataPlaneStatus } from "./enforced.ts";
import type { DataPlane, ObservedPolicy } from "./observed.ts";
import type { Pace } from "./poll-pace.ts";
import { isOverAdmitted } from "./sidecars.ts";

/*
 * Cache of policies between two full reads. A full read gets the complete state of a policy from the database, in several calls. After
 * this, a list of all policies, which poll.ts polls, shows whether the state has changed:
 *
 *   unknown      → full read; the policy matches its manifest → cached
 *   cached       poll shows new sidecar reports → the status is computed from the cache, without a call;
 *                poll shows any other change, a related manifest changes, or an action is due → unknown
 *
 * The cache is only an optimization: a lost entry costs a few calls and affects nothing else.
 */

/** Result of a poll for one policy. */
export type ListedPolicy = Data<"policies.listStatus">[number];

export interface PolicyReading {
  readonly observed: ObservedPolicy;
  /** Required poll interval while the reports are expected to change; `undefined` if no change is expected. */
  readonly pace: Pace | undefined;
}

interface Remembered extends PolicyReading {
  /** Newest sidecar reports, from the full read or a later poll. */
  readonly dataPlane: DataPlane | undefined;
}

export interface PolicyCache {
  /** Called before a full read. Returns a unique number for this read. */
  begin(key: ObjectKey): number;
  /**
   * Stores the result of a full read. Ignores the result if the policy was dropped after the read began, because the read may have missed
   * the change.
   */
  remember(reading: PolicyReading): void;
  forget(key: ObjectKey): void;
  /** Returns the cached state with the newest reports; `undefined` if the policy must be read completely. */
  get(object: ManifestObject): ObservedPolicy | undefined;
  /**
   * Applies the result of a poll that began at `atMs`, and returns whether the policy must be reconciled. `listed` is `undefined` if the
   * policy is not in the list.
   */
  show(key: ObjectKey, listed: ListedPolicy | undefined, atMs: number): boolean;
  /**
   * Returns the time of the last report of each gate of a policy, Unix ms, by the name under which the gate reports. If there are too many
   * gates, includes only those with the newest reports.
   */
  reporters(key: ObjectKey): ReadonlyMap<string, number>;
  /** Removes a policy that was deleted. */
  drop(key: ObjectKey): void;
  /** Returns the cached policies, sorted so that the least recently read one is first. */
  list(): readonly PolicyReading[];
}

/**
 * Maximum number of reporting names that are remembered per policy: twice the number that the API lists, for the current names and as many
 * previous ones.
 */
const HEARD_MAX = 2_000;

/** Creates the cache. For each policy whose status is expected to change, it calls `onPace` with the pace at which to poll the policy. */
export function createPolicyCache(onPace: (pace: Pace) => void = () => undefined): PolicyCache {
  // Cached policies in the order of their last full read. Computing a status from the cache does not change the order.
  const readings = new Map<string, Remembered>();
  // Number of the full read that is running or whose result is cached, per policy.
  const begun = new Map<string, number>();
  const heard = new Map<string, Map<string, number>>();
  let count = 0;

  const observe = (key: ObjectKey, dataPlane: DataPlane | undefined, atMs: number) => {
    const known = heard.get(formatKey(key)) ?? new Map<string, number>();
    for (const podId of dataPlane?.podIds ?? []) {
      known.delete(podId);
      known.set(podId, atMs);
    }
    for (const podId of known.keys()) {
      if (known.size <= HEARD_MAX) break;
      known.delete(podId);
    }
    if (known.size > 0) heard.set(formatKey(key), known);
  };

  const forget = (key: ObjectKey) => {
    begun.delete(formatKey(key));
    readings.delete(formatKey(key));
  };

  return {
    begin: (key) => {
      forget(key);
      count += 1;
      begun.set(formatKey(key), count);
      return count;
    },

    remember: (reading) => {
      const { object, pollId, stored } = reading.observed;
      const name = formatKey(object.metadata);
      if (begun.get(name) !== pollId) return;
      observe(object.metadata, stored?.dataPlane, reading.observed.seenAtMs);
      readings.set(name, { ...reading, dataPlane: stored?.dataPlane });
      if (reading.pace !== undefined) onPace(reading.pace);
    },

    forget,

    get: (object) => {
      const { uid, generation, deletionTimestamp } = object.metadata;
      const reading = readings.get(formatKey(object.metadata));
      if (reading === undefined || deletionTimestamp !== undefined) return undefined;
      const known = reading.observed.object.metadata;
      if (known.uid !== uid || known.generation !== generation) return undefined;
      const { stored } = reading.observed;
      return stored && { ...reading.observed, stored: { ...stored, dataPlane: reading.dataPlane } };
    },

    show: (key, listed, atMs) => {
      const name = formatKey(key);
      observe(key, listed?.dataPlane, atMs);
      const reading = readings.get(name);
      // A full read began after this poll, so its result is newer.
      if (reading === undefined || atMs < reading.observed.seenAtMs) return false;
      if (listed === undefined || !isAsSeen(listed, reading.observed)) {
        forget(key);
        return true;
      }
      readings.set(name, { ...reading, dataPlane: listed.dataPlane });
      return !isSameToReaders(listed.dataPlane, reading.dataPlane, reading.observed);
    },

    reporters: (key) => heard.get(formatKey(key)) ?? new Map(),

    drop: (key) => {
      forget(key);
      heard.delete(formatKey(key));
    },

    list: () => [...readings.values()],
  };
}

/** Returns whether the database still contains the policy and the API that a full read found. Pure. */
function isAsSeen(listed: ListedPolicy, { stored }: ObservedPolicy): boolean {
  if (stored === undefined) return false;
  const { dataPlane: _, onStale: __, ...known } = stored;
  const { dataPlane: ___, ...now } = listed;
  return isDeepStrictEqual(now, known);
}

/** Returns whether two reports result in the same status. Small variations of the lag do not change the status. Pure. */
function isSameToReaders(
  a: DataPlane | undefined,
  b: DataPlane | undefined,
  { stored }: Pick<ObservedPolicy, "stored">,
): boolean {
  const afterMs = stored?.onStale?.afterMs ?? Number.POSITIVE_INFINITY;
  const text = (dataPlane: DataPlane | undefined) =>
    JSON.stringify([
      toDataPlaneStatus(dataPlane),
      dataPlane?.podIds,
      dataPlane?.upstreamPorts,
      dataPlane?.unsupported?.reason,
      dataPlane !== undefined && dataPlane.maxStalenessMs > afterMs,
      dataPlane !== undefined && isOverAdmitted(dataPlane),
    ]);
  return text(a) === text(b);
}
