import type { Edge } from "../edge/open.ts";
import type { ForwardParts } from "./app/forward.ts";
import type { UpgradeParts } from "./app/upgrade.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Readings } from "./metrics.ts";
import type { Readiness } from "./readiness.ts";

/** The values that are read from the parts when Prometheus scrapes. */
export function gaugesOf(
  { projection, follower, counters }: Knowledge,
  parts: { sink: Edge["sink"]; forwarding: ForwardParts; upgrading: UpgradeParts; readiness: () => Readiness },
): Readings {
  const { sink, forwarding, upgrading, readiness } = parts;
  return {
    stalenessS: () => projection.stalenessMs() / 1000,
    sourceUsable: () => projection.sourceState().usable,
    refused: () => projection.refused(),
    policyVersion: () => follower.current?.record.version ?? 0,
    policyGeneration: () => follower.current?.record.generation ?? 0,
    policyGone: () => follower.isGone,
    policyRefused: () => follower.refused !== undefined,
    ready: () => readiness().ready,
    ongoing: () => forwarding.ongoing.size,
    places: () => {
      const { taken, waiting } = forwarding.upstream.places;
      return { taken, waiting, upgraded: upgrading.places.taken };
    },
    eventsDropped: () => sink.dropped(),
    overAdmitted: () => counters.overAdmitted(),
    cacheSizes: () => projection.cacheSizes(),
  };
}
