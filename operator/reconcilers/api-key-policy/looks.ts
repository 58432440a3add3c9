import type { Data } from "../../../core/api/procedures.ts";
import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { toDataPlaneStatus } from "./enforced.ts";
import type { DataPlane, ObservedPolicy } from "./observed.ts";
import { isOvershot } from "./overshot.ts";
import type { Pace } from "./poll-pace.ts";

/*
 * What is remembered of a policy between two looks at it. A whole look reads everything about a policy from the store, in several
 * calls. One list of all policies, polled (poll.ts), then shows whether anything changed:
 *
 *   unknown      → a whole look; when it finds the policy as the manifest says → remembered
 *   remembered   the poll shows other reports of sidecars → the status is made again from what is remembered, without a call;
 *                the poll shows anything else, a manifest that concerns it changes, or an action is due → unknown
 *
 * A look is an optimization alone: forgetting one costs some calls, and nothing else depends on it.
 */

/** What the poll shows of one policy. */
export type Picture = Data<"policies.listStatus">[number];

export interface Look {
  readonly observed: ObservedPolicy;
  /** How often the reports are wanted while they are expected to change; undefined when the policy is at rest. */
  readonly pace: Pace | undefined;
}

interface Remembered extends Look {
  /** The newest reports, of the look itself or of a later poll. */
  readonly dataPlane: DataPlane | undefined;
}

export interface PolicyLooks {
  /** Before a whole look. Returns its number, which no other look has. */
  begin(key: ObjectKey): number;
  /** Ignores a look when the policy was forgotten since it began: it may have missed what that was for. */
  remember(look: Look): void;
  forget(key: ObjectKey): void;
  /** Returns what was seen, with the newest reports; undefined when a whole look is due. */
  recall(object: ManifestObject): ObservedPolicy | undefined;
  /**
   * Takes in what a poll that began at `atMs` shows of a policy; undefined when it is not in the list.
   * @returns whether the policy must be reconciled.
   */
  show(key: ObjectKey, picture: Picture | undefined, atMs: number): boolean;
  /** When each gate of a policy last reported, Unix ms, by the name by which it reports. The gates that were heard longest ago are dropped first. */
  heard(key: ObjectKey): ReadonlyMap<string, number>;
  /** For a policy that was deleted. */
  drop(key: ObjectKey): void;
  /** The remembered looks, in the order of their last whole look. */
  list(): readonly Look[];
}

/** Twice the names that the API lists: those that report, and as many that reported before. */
const HEARD_MAX = 2_000;

/** `onPace` is told the pace of each look that is not at rest. */
export function createPolicyLooks(onPace: (pace: Pace) => void = () => undefined): PolicyLooks {
  // In the order of their last whole look: a look that was made from what is remembered keeps its place.
  const looks = new Map<string, Remembered>();
  // The number of the look of each policy that is under way, or remembered.
  const begun = new Map<string, number>();
  const heard = new Map<string, Map<string, number>>();
  let count = 0;

  const hear = (key: ObjectKey, dataPlane: DataPlane | undefined, atMs: number) => {
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
    looks.delete(formatKey(key));
  };

  return {
    begin: (key) => {
      forget(key);
      count += 1;
      begun.set(formatKey(key), count);
      return count;
    },

    remember: (look) => {
      const { object, lookId, stored } = look.observed;
      const name = formatKey(object.metadata);
      if (begun.get(name) !== lookId) return;
      hear(object.metadata, stored?.dataPlane, look.observed.seenAtMs);
      looks.set(name, { ...look, dataPlane: stored?.dataPlane });
      if (look.pace !== undefined) onPace(look.pace);
    },

    forget,

    recall: (object) => {
      const { uid, generation, deletionTimestamp } = object.metadata;
      const look = looks.get(formatKey(object.metadata));
      if (look === undefined || deletionTimestamp !== undefined) return undefined;
      const known = look.observed.object.metadata;
      if (known.uid !== uid || known.generation !== generation) return undefined;
      const { stored } = look.observed;
      return stored && { ...look.observed, stored: { ...stored, dataPlane: look.dataPlane } };
    },

    show: (key, picture, atMs) => {
      const name = formatKey(key);
      hear(key, picture?.dataPlane, atMs);
      const look = looks.get(name);
      // What a poll that began before the look shows is older than what the look found.
      if (look === undefined || atMs < look.observed.seenAtMs) return false;
      if (picture === undefined || !isAsSeen(picture, look.observed)) {
        forget(key);
        return true;
      }
      looks.set(name, { ...look, dataPlane: picture.dataPlane });
      return !isSameToReaders(picture.dataPlane, look.dataPlane, look.observed);
    },

    heard: (key) => heard.get(formatKey(key)) ?? new Map(),

    drop: (key) => {
      forget(key);
      heard.delete(formatKey(key));
    },

    list: () => [...looks.values()],
  };
}

/** Whether the store has of a policy and its API what a whole look found. Pure. */
function isAsSeen(picture: Picture, { stored, api }: ObservedPolicy): boolean {
  return (
    stored !== undefined &&
    api !== undefined &&
    picture.policyId === stored.policyId &&
    picture.uid === stored.uid &&
    picture.generation === stored.generation &&
    picture.version === stored.version &&
    picture.manager === stored.manager &&
    picture.apiId === api.apiId &&
    picture.api?.name === api.name &&
    picture.api.manager === api.manager
  );
}

/** Whether a status says the same of both reports: small variations of the lag do not show. Pure. */
function isSameToReaders(
  a: DataPlane | undefined,
  b: DataPlane | undefined,
  { stored }: Pick<ObservedPolicy, "stored">,
): boolean {
  const afterMs = stored?.policy?.onStale.afterMs ?? Number.POSITIVE_INFINITY;
  const text = (dataPlane: DataPlane | undefined) =>
    JSON.stringify([
      toDataPlaneStatus(dataPlane),
      dataPlane?.podIds,
      dataPlane?.upstreamPorts,
      dataPlane?.refused?.reason,
      dataPlane !== undefined && dataPlane.oldestLagMs > afterMs,
      dataPlane !== undefined && isOvershot(dataPlane),
    ]);
  return text(a) === text(b);
}
