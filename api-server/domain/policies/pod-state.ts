import { type Freshness, judgeFreshness } from "../../../core/policies/freshness.ts";
import { type CompiledPolicy, PolicyInput } from "../../../core/policies/policy.ts";
import { tolerant } from "../../../core/tolerant.ts";
import type { RuleCount, SeenPodReport } from "../../../edge/pods/contract.ts";

/*
 * What the reports of a policy's sidecars say together. Pure: the reports are read by others. Reports are the pods' word, so the sums
 * are no more than that; nothing is decided by them.
 */

/** `refuses`: it keeps its last policy, because it cannot enforce this version. */
export type PodState = "current" | "behind" | "refuses";

export interface PodsTogether {
  readonly pods: number;
  readonly current: number;
  readonly behind: number;
  readonly refusing: number;
  /** Why one of them refuses. */
  readonly reason: string | undefined;
  /** Those that serve on data older than the policy's first bound, and those that serve nothing for that reason. */
  readonly departed: number;
  readonly denying: number;
  readonly oldestLagMs: number;
  /** Requests refused under this version, and those that Audit mode admitted although it would have refused them. */
  readonly refused: number;
  readonly wouldRefuse: number;
}

const OnStale = tolerant(PolicyInput.shape.onStale);

/** The stored bounds of staleness; those of a policy that this release cannot read are the defaults. */
export function readOnStale(stored: unknown): CompiledPolicy["onStale"] {
  const read = OnStale.safeParse(stored ?? undefined);
  return read.success ? read.data : OnStale.parse(undefined);
}

export function stateOf({ version, refused }: SeenPodReport, versionNow: number): PodState {
  // A refusal without a readable version still counts.
  if (refused !== undefined && (refused.version === versionNow || refused.version === 0)) return "refuses";
  return version === versionNow ? "current" : "behind";
}

export const freshnessOf = ({ stalenessMs }: SeenPodReport, onStale: CompiledPolicy["onStale"]): Freshness =>
  judgeFreshness(onStale, stalenessMs);

/** How far these pods exceeded limits while the shared counters were away; undefined when none says that it did. */
export function overshotBy(
  reports: readonly SeenPodReport[],
): { readonly units: number; readonly percent: number; readonly lastAgoMs: number } | undefined {
  const said = reports.flatMap(({ overshot, lastSeenMs }) =>
    overshot === undefined ? [] : [{ ...overshot, lastAgoMs: Math.max(0, lastSeenMs - overshot.lastMs) }],
  );
  if (said.length === 0) return undefined;
  return {
    units: safe(said.reduce((sum, { units }) => sum + units, 0)),
    percent: said.reduce((most, { percent }) => Math.max(most, percent), 0),
    lastAgoMs: said.reduce((least, { lastAgoMs }) => Math.min(least, lastAgoMs), Number.MAX_SAFE_INTEGER),
  };
}

/** A sidecar without a heartbeat lags infinitely, which JSON cannot express. */
export const toJsonMs = (ms: number): number => Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);

export function together(
  reports: readonly SeenPodReport[],
  { version, onStale }: { readonly version: number; readonly onStale: CompiledPolicy["onStale"] },
): PodsTogether {
  const states = reports.map((report) => stateOf(report, version));
  const fresh = reports.map((report) => freshnessOf(report, onStale));
  const count = <T>(all: readonly T[], wanted: T): number => all.filter((one) => one === wanted).length;
  const byMode = (mode: "Enforce" | "Audit"): number =>
    reports.filter((report) => report.version === version).reduce((sum, report) => sum + countIn(report, mode), 0);
  return {
    pods: reports.length,
    current: count(states, "current"),
    behind: count(states, "behind"),
    refusing: count(states, "refuses"),
    reason: reports.find((_, i) => states[i] === "refuses")?.refused?.reason,
    departed: count(fresh, "Departed"),
    denying: count(fresh, "Denied"),
    oldestLagMs: reports.reduce((oldest, { stalenessMs }) => Math.max(oldest, toJsonMs(stalenessMs)), 0),
    refused: safe(byMode("Enforce")),
    wouldRefuse: safe(byMode("Audit")),
  };
}

function countIn({ refusals }: SeenPodReport, mode: "Enforce" | "Audit"): number {
  if (refusals?.mode !== mode) return 0;
  return refusals.counts.reduce((sum, { count }) => sum + count, refusals.others);
}

/** The counts of all pods that enforce this version, added up, the largest first; `others` are those that pods did not name. */
export function byRule(
  reports: readonly SeenPodReport[],
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

/** 256 rules and the decisions that refuse: no policy has more, though a pod may say so. */
const NAMED_MAX = 1_000;

/** Pods may report numbers whose sum is none. */
const safe = (sum: number): number => Math.min(sum, Number.MAX_SAFE_INTEGER);
