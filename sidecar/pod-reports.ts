import { upstreamPortInPod } from "../core/gates/upstream-port.ts";
import { RELEASE } from "../core/release.ts";
import type { EdgeCounters, OverAdmissionTotal } from "../edge/edge.ts";
import type { PodLimitsExceeded, PodReport } from "../edge/pods/contract.ts";
import type { SidecarConfig } from "./config.ts";
import type { RefusalCounts } from "./decision/rejection-counts.ts";
import type { GateState } from "./gate-state.ts";
import type { PodsAlive } from "./pods-alive.ts";

type Reported = Pick<GateState, "projection" | "follower"> & {
  readonly refusals: Pick<RefusalCounts, "of">;
  readonly counters: Pick<EdgeCounters, "overAdmissions">;
};

/**
 * Reports which policy this pod enforces, every `everyMs` and immediately after a change. A failed report is not retried, because the next
 * report replaces it. Logs when reports start to fail, and when they succeed again.
 */
export function startPodReports(
  config: Pick<SidecarConfig, "edge" | "workspaceId" | "policyId" | "podId" | "region" | "upstream" | "logger">,
  reported: Reported,
  { everyMs, podsAlive }: { readonly everyMs: number; readonly podsAlive: PodsAlive },
): { stop(): void } {
  const { edge, workspaceId, policyId, podId, region, logger } = config;
  const upstreamPort = upstreamPortInPod(config.upstream);
  const pod = {
    ...{ workspaceId, policyId, podId, region, release: RELEASE },
    ...(upstreamPort === undefined ? {} : { upstreamPort }),
  };
  let isFailing = false;
  let isStopped = false;

  async function send(): Promise<void> {
    try {
      const report = describePod(pod, reported);
      if (report === undefined || isStopped) return;
      await edge.pods.report(report);
      podsAlive.count = (await edge.pods.countAlive(report)) ?? podsAlive.count;
      if (isFailing) logger.info("pod reports are sent again");
      isFailing = false;
    } catch (error) {
      if (!isFailing && !isStopped) logger.warn({ err: error }, "the pod report cannot be sent");
      isFailing = true;
    }
  }

  reported.follower.onChange(() => void send());
  const timer = setInterval(() => void send(), everyMs);
  timer.unref();
  return {
    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
}

/** Returns the report of this pod; `undefined` before the first policy is read. */
function describePod(
  pod: Pick<PodReport, "workspaceId" | "policyId" | "podId" | "region" | "release" | "upstreamPort">,
  { projection, follower, refusals, counters }: Reported,
): PodReport | undefined {
  const { current, refused } = follower;
  if (current === undefined && refused === undefined) return undefined;
  const { generation, version } = current?.record ?? { generation: 0, version: 0 };
  const counted = current === undefined ? {} : { refusals: refusals.of(current) };
  const overAdmitted = overAdmissionOf(counters.overAdmissions().outage);
  const exceeded = overAdmitted === undefined ? {} : { overAdmitted };
  const report = { ...pod, generation, version, stalenessMs: projection.stalenessMs(), ...counted, ...exceeded };
  if (refused === undefined) return report;
  return { ...report, refused: { version: refused.version ?? 0, reason: refused.reason } };
}

/** Returns the over-admission of this pod, excluding async limits, which policies allow to be exceeded at any time. */
function overAdmissionOf({ units, largestShare, lastMs }: OverAdmissionTotal): PodLimitsExceeded | undefined {
  if (lastMs === undefined) return undefined;
  return { units, percent: Math.ceil(100 * largestShare), lastMs: Math.floor(lastMs) };
}
