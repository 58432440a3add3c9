import { checkFreshness, type Freshness } from "../../../core/policies/freshness.ts";
import { type CompiledPolicy, PolicyInput } from "../../../core/policies/policy.ts";
import { tolerant } from "../../../core/tolerant.ts";
import type { PodReportSummary, RuleCount } from "../../../edge/pods/contract.ts";
import type { PolicyReports } from "./find-reports.ts";

/*
 * Aggregates the reports from a policy's sidecars. Pure: the caller reads the reports. No decision depends on the sums, because reports are
 * unverified data from the pods.
 */

/** State of a pod. `unsupported`: the pod keeps its last policy, because it cannot enforce this version. */
export type PodState = "updated" | "behind" | "unsupported";

export interface PodsTogether {
  readonly pods: number;
  /** Number of these pods that no earlier policy has counted; see `together`. */
  readonly firstPods: number;
  /** Number of pods that stopped reporting without announcing that they were shutting down. No other number includes them. */
  readonly silent: number;
  readonly updated: number;
  readonly behind: number;
  readonly unsupported: number;
  /** Reason why the version is unsupported, from one of the pods that report it. */
  readonly reason: string | undefined;
  /** Number of pods that serve stale data. `expired` is the number of pods that reject requests because their data is too old. */
  readonly stale: number;
  readonly expired: number;
  readonly maxStalenessMs: number;
  /**
   * Number of requests that pods rejected under this version. `wouldRefuse` is the number of requests that violated it but were admitted in
   * Audit mode.
   */
  readonly refused: number;
  readonly wouldRefuse: number;
}

const OnStale = tolerant(PolicyInput.shape.onStale);

/** Returns the policy's staleness bounds, or the defaults if this release cannot read the policy. */
export function readOnStale(stored: unknown): CompiledPolicy["onStale"] {
  const read = OnStale.safeParse(stored ?? undefined);
  return read.success ? read.data : OnStale.parse(undefined);
}

export function stateOf({ version, refused }: PodReportSummary, versionNow: number): PodState {
  // An unsupported version reported as 0 counts too: it means that the pod could not read the version number.
  if (refused !== undefined && (refused.version === versionNow || refused.version === 0)) return "unsupported";
  return version === versionNow ? "updated" : "behind";
}

export const freshnessOf = ({ stalenessMs }: PodReportSummary, onStale: CompiledPolicy["onStale"]): Freshness =>
  checkFreshness(onStale, stalenessMs);

/** Returns how far these pods exceeded limits while the Redis counters were unavailable; `undefined` if no pod reports it. */
export function overAdmittedBy(
  reports: readonly PodReportSummary[],
): { readonly units: number; readonly percent: number; readonly lastAgoMs: number } | undefined {
  const said = reports.flatMap(({ overAdmitted, lastSeenMs }) =>
    overAdmitted === undefined ? [] : [{ ...overAdmitted, lastAgoMs: Math.max(0, lastSeenMs - overAdmitted.lastMs) }],
  );
  if (said.length === 0) return undefined;
  return {
    units: safe(said.reduce((sum, { units }) => sum + units, 0)),
    percent: said.reduce((most, { percent }) => Math.max(most, percent), 0),
    lastAgoMs: said.reduce((least, { lastAgoMs }) => Math.min(least, lastAgoMs), Number.MAX_SAFE_INTEGER),
  };
}

/**
 * Returns the duration as a number that JSON can express. This is required because the lag of a sidecar that has not received a heartbeat
 * is infinite.
 */
export const toJsonMs = (ms: number): number => Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);

/** @param counted ids of the pods that were counted for earlier policies. The pods of this policy are added to it. */
export function together(
  { reporting: reports, silent }: PolicyReports,
  { version, onStale }: { readonly version: number; readonly onStale: CompiledPolicy["onStale"] },
  counted: Set<string> = new Set(),
): PodsTogether {
  const countedBefore = counted.size;
  for (const { podId } of reports) counted.add(podId);
  const states = reports.map((report) => stateOf(report, version));
  const fresh = reports.map((report) => freshnessOf(report, onStale));
  const count = <T>(all: readonly T[], requested: T): number => all.filter((one) => one === requested).length;
  const byMode = (mode: "Enforce" | "Audit"): number =>
    reports.filter((report) => report.version === version).reduce((sum, report) => sum + countIn(report, mode), 0);
  return {
    pods: reports.length,
    firstPods: counted.size - countedBefore,
    silent: silent.length,
    updated: count(states, "updated"),
    behind: count(states, "behind"),
    unsupported: count(states, "unsupported"),
    reason: reports.find((_, i) => states[i] === "unsupported")?.refused?.reason,
    stale: count(fresh, "Stale"),
    expired: count(fresh, "Expired"),
    maxStalenessMs: reports.reduce((oldest, { stalenessMs }) => Math.max(oldest, toJsonMs(stalenessMs)), 0),
    refused: safe(byMode("Enforce")),
    wouldRefuse: safe(byMode("Audit")),
  };
}

function countIn({ refusals }: PodReportSummary, mode: "Enforce" | "Audit"): number {
  if (refusals?.mode !== mode) return 0;
  return refusals.counts.reduce((sum, { count }) => sum + count, refusals.others);
}

/**
 * Returns the counts, summed over all pods that enforce this version, largest first. `others` is the sum of the counts that are not listed
 * by rule.
 */
export function byRule(
  reports: readonly PodReportSummary[],
  version: number,
): { readonly sinceMs: number | undefined; readonly counts: readonly RuleCount[]; readonly others: number } {
  const sums = new Map<string, RuleCount>();
  let others = 0;
  let sinceMs: number | undefined;
  for (const { version: theirs, refusals } of reports) {
    if (theirs !== version || refusals === undefined) continue;
    sinceMs = Math.min(sinceMs ?? refusals.sinceMs, refusals.sinceMs);
    others = safe(others + refusals.others);
    for (const { rule, code, count } of refusals.counts) {
      const key = `${rule} ${code}`;
      sums.set(key, { rule, code, count: safe((sums.get(key)?.count ?? 0) + count) });
    }
  }
  const counts = [...sums.values()].sort((a, b) => b.count - a.count || a.rule - b.rule || (a.code < b.code ? -1 : 1));
  const named = counts.slice(0, NAMED_MAX);
  const rest = counts.slice(NAMED_MAX).reduce((sum, { count }) => safe(sum + count), others);
  return { sinceMs, counts: named, others: rest };
}

/** Maximum number of named rules. A policy has at most 256 rules and a few other reasons for decisions, but a pod may report more. */
const NAMED_MAX = 1_000;

/** Limits the sum to the safe integers, because pods can report numbers whose sum exceeds them. */
const safe = (sum: number): number => Math.min(sum, Number.MAX_SAFE_INTEGER);
