import { JUDGES } from "./checkers/all.ts";
import type { Case, Violation } from "./checkers/checker.ts";
import { calmMs, slowestMendMs } from "./checkers/responses.ts";
import { type Delays, revocationDelays } from "./checkers/revoked.ts";
import type { Answer } from "./journal.ts";

/* A run in numbers. */

export interface Report {
  readonly seed: number;
  readonly minutes: number;
  /** Holds the journal and the logs of all processes. */
  readonly folder: string;
  readonly keys: number;
  readonly changes: Readonly<Record<"acknowledged" | "refused" | "unknown", number>>;
  readonly responses: Readonly<Partial<Record<Answer, number>>>;
  readonly swept: number;
  readonly events: number;
  /** By kind: how many were executed. */
  readonly faults: Readonly<Record<string, number>>;
  readonly skippedFaults: number;
  /** Times at which the machine did not schedule us. */
  readonly stalls: { readonly count: number; readonly longestMs: number };
  /** For how long no fault or stall would have excused a wrong reply. */
  readonly calmMs: number;
  readonly revocations: Delays;
  readonly stalenessMaxMs: number;
  readonly slowestMendMs: number;
  readonly quietAfterMs: number;
  readonly tookMs: number;
  /** By judge. */
  readonly violationCounts: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
}

export function makeReport(options: {
  seed: number;
  minutes: number;
  folder: string;
  of: Case;
  violations: readonly Violation[];
  quietAfterMs: number;
  tookMs: number;
}): Report {
  const { of, violations, ...rest } = options;
  const { changes, grants, asks, samples, faults } = of.recorded;
  const outcomes = countBy([...changes, ...grants], ({ outcome }) => outcome);
  const stalls = faults.filter(({ kind }) => kind === "stall");
  const staleness = samples.map(({ stalenessMs }) => stalenessMs ?? 0);
  return {
    ...rest,
    keys: of.histories.size,
    changes: { acknowledged: 0, refused: 0, unknown: 0, ...outcomes },
    responses: countBy(asks, ({ response }) => response),
    swept: of.sweep.length,
    events: of.final.eventCount,
    faults: countBy(
      faults.filter(({ kind, skipped }) => kind !== "stall" && skipped === undefined),
      ({ kind }) => kind,
    ),
    stalls: { count: stalls.length, longestMs: Math.max(0, ...stalls.map((stall) => stall.endedMs - stall.startedMs)) },
    skippedFaults: faults.filter(({ skipped }) => skipped !== undefined).length,
    calmMs: calmMs(of),
    revocations: revocationDelays(of),
    stalenessMaxMs: Math.round(staleness.reduce((max, each) => Math.max(max, each), 0)),
    slowestMendMs: slowestMendMs(of),
    violationCounts: {
      ...Object.fromEntries(Object.keys(JUDGES).map((name) => [name, 0])),
      ...countBy(violations, ({ judge }) => judge),
    },
    violations,
  };
}

function countBy<T>(list: readonly T[], name: (one: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of list) counts[name(one)] = (counts[name(one)] ?? 0) + 1;
  return counts;
}

const SHOWN_MAX = 3;

/** The report for a person. */
export function toTable(report: Report): string {
  const { revocations, changes } = report;
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  const rows: Array<[string, string]> = [
    ["seed", `${report.seed}, ${report.minutes} min of load, ${Math.round(report.tookMs / 1000)} s in all`],
    ["keys", String(report.keys)],
    ["changes", list(changes)],
    ["responses", list(report.responses as Record<string, number>)],
    ["faults", `${list(report.faults)}${report.skippedFaults > 0 ? ` (${report.skippedFaults} left out)` : ""}`],
    [
      "machine",
      `stood still ${report.stalls.count} times, for ${report.stalls.longestMs} ms at the most; ${Math.round(report.calmMs / 1000)} s were calm`,
    ],
    [
      "revocations",
      `${revocations.count} seen; let in afterwards for p50 ${revocations.p50Ms} ms, p99 ${revocations.p99Ms} ms, max ${revocations.maxMs} ms`,
    ],
    ["staleness", `at most ${report.stalenessMaxMs} ms`],
    [
      "mending",
      `no decision up to ${report.slowestMendMs} ms after a fault; quiet after ${report.quietAfterMs.toFixed(0)} ms`,
    ],
    ["at the end", `${report.swept} answers compared with Postgres, ${report.events} events`],
    ["violations", list(report.violationCounts)],
  ];
  const table = rows.map(([name, text]) => `${name.padEnd(12)} ${text}`).join("\n");
  const shown = Object.keys(report.violationCounts).flatMap((judge) =>
    report.violations
      .filter((violation) => violation.judge === judge)
      .slice(0, SHOWN_MAX)
      .map(({ what, evidence }) => `\n${judge}: ${what}\n  ${JSON.stringify(evidence)}`),
  );
  return table + shown.join("");
}
