import type { Edge } from "../edge/open.ts";
import type { HttpServer } from "../http1/server.ts";
import type { ForwardParts } from "./app/forward.ts";
import type { UpgradeParts } from "./app/upgrade.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Readings } from "./metrics.ts";
import type { PodsAlive } from "./pods-alive.ts";
import type { Readiness } from "./readiness.ts";

interface ProxyParts {
  readonly forwarding: ForwardParts;
  readonly upgrading: UpgradeParts;
}

/** The values that are read from the parts when Prometheus scrapes. */
export function gaugesOf(
  { projection, follower, counters, snapshot }: Knowledge,
  parts: {
    sink: Edge["sink"];
    server: HttpServer | undefined;
    proxy: ProxyParts | undefined;
    podsAlive: PodsAlive;
    readiness: () => Readiness;
  },
): Readings {
  const { sink, server, proxy, readiness } = parts;
  return {
    stalenessS: () => projection.stalenessMs() / 1000,
    sourceUsable: () => projection.sourceState().usable,
    refused: () => projection.refused(),
    policyVersion: () => follower.current?.record.version ?? 0,
    policyGeneration: () => follower.current?.record.generation ?? 0,
    policyGone: () => follower.isGone,
    policyRefused: () => follower.refused !== undefined,
    ready: () => readiness().ready,
    ongoing: () => proxy?.forwarding.ongoing.size ?? 0,
    connections: () => server?.open ?? { http1: 0, http2: 0 },
    places: () => {
      const { taken, waiting } = proxy?.forwarding.upstream.places ?? { taken: 0, waiting: 0 };
      return { taken, waiting, upgraded: proxy?.upgrading.places.taken ?? 0 };
    },
    eventsDropped: () => sink.dropped(),
    overshoots: () => counters.overshoots(),
    podsAlive: () => parts.podsAlive.count,
    isRestored: () => projection.isRestored(),
    snapshot: () => snapshot?.counts,
    cacheSizes: () => projection.cacheSizes(),
  };
}
