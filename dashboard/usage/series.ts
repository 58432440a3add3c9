import type { Code } from "../../core/verification/codes.ts";
import { bucketStarts, type TimeWindow } from "./buckets.ts";

/*
 * Converts result rows to the series of a plot, one value per bucket of the window. A bucket without rows is 0 if it lies before the time
 * until which usage is counted, and otherwise a gap (`null`).
 */

/** Labels of the outcomes, in the order of stacking and of the legend. */
export const OUTCOMES: Readonly<Record<Code, string>> = {
  VALID: "valid",
  RATE_LIMITED: "over a limit",
  USAGE_EXCEEDED: "no remaining credits",
  INSUFFICIENT_PERMISSIONS: "missing permission",
  FORBIDDEN: "forbidden address",
  DISABLED: "disabled",
  EXPIRED: "expired",
  NOT_FOUND: "not found",
};
const ORDER = Object.keys(OUTCOMES);

/** Returns the label of an outcome; an outcome that is unknown to this release is returned unchanged. */
export const outcomeInWords = (outcome: string): string =>
  Object.hasOwn(OUTCOMES, outcome) ? OUTCOMES[outcome as Code] : outcome;

export interface OutcomeRow {
  readonly timeMs: number;
  readonly outcome: string;
  readonly verifications: number;
  readonly credits: number;
}

export interface OutcomeSeries {
  readonly outcome: string;
  /** Counts, one per bucket; `null` if the bucket is not counted yet. */
  readonly counts: readonly (number | null)[];
  readonly total: number;
}

export interface OutcomesOverTime {
  readonly window: TimeWindow;
  /** Start times of the buckets, Unix ms. */
  readonly times: readonly number[];
  /** Series of the outcomes that occurred, in a fixed order, unknown outcomes last. */
  readonly series: readonly OutcomeSeries[];
  readonly credits: readonly (number | null)[];
  readonly total: number;
  readonly creditsTotal: number;
}

/** @throws Error if the rows do not have the columns of `outcomesQuery`. */
export const readOutcomeRows = (rows: readonly Record<string, unknown>[]): OutcomeRow[] =>
  rows.map((row) => ({
    timeMs: instant(row.time),
    outcome: text(row.outcome),
    verifications: whole(row.verifications),
    credits: whole(row.credits),
  }));

export function outcomesOverTime(
  rows: readonly OutcomeRow[],
  window: TimeWindow,
  countedUntilMs: number,
): OutcomesOverTime {
  const times = bucketStarts(window);
  const places = new Map(times.map((ms, index) => [ms, index]));
  const empty = (): (number | null)[] => times.map((ms) => (ms < countedUntilMs ? 0 : null));
  const byOutcome = new Map<string, (number | null)[]>();
  const credits = empty();
  for (const { timeMs, outcome, verifications, credits: spent } of rows) {
    const place = places.get(timeMs);
    if (place === undefined) continue;
    const counts = byOutcome.get(outcome) ?? empty();
    byOutcome.set(outcome, counts);
    counts[place] = (counts[place] ?? 0) + verifications;
    credits[place] = (credits[place] ?? 0) + spent;
  }
  const series = [...byOutcome]
    .map(([outcome, counts]) => ({ outcome, counts, total: sumOf(counts) }))
    .toSorted((a, b) => rankOf(a.outcome) - rankOf(b.outcome) || (a.outcome < b.outcome ? -1 : 1));
  const total = series.reduce((sum, each) => sum + each.total, 0);
  return { window, times, series, credits, total, creditsTotal: sumOf(credits) };
}

/** Formats the totals: "1,434 verifications, 253 rejected". */
export function totalsText({ total, series }: OutcomesOverTime): string {
  const valid = series.find(({ outcome }) => outcome === "VALID")?.total ?? 0;
  return `${total.toLocaleString("en")} verifications, ${(total - valid).toLocaleString("en")} rejected`;
}

const rankOf = (outcome: string): number => (ORDER.includes(outcome) ? ORDER.indexOf(outcome) : ORDER.length);
const sumOf = (counts: readonly (number | null)[]): number => counts.reduce<number>((sum, n) => sum + (n ?? 0), 0);

/** Returns the upper edge of each series in a stack; a bucket that is not counted is a gap. The last series is the total. */
export function stacked(series: readonly Pick<OutcomeSeries, "counts">[]): (number | null)[][] {
  const tops: (number | null)[][] = [];
  for (const { counts } of series) {
    const below = tops.at(-1);
    tops.push(
      counts.map((count, index) => {
        const under = below?.[index] ?? null;
        return count === null && under === null ? null : (count ?? 0) + (under ?? 0);
      }),
    );
  }
  return tops;
}

/** Possible distances between two ticks of an integer axis: 1, 2, 5, 10 and so on. */
export const WHOLE_STEPS: number[] = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((n) => n * 10 ** power),
).flat();

/** Returns whether all values are integers, such as counts. Their axis then has no tick at 0.5. */
export const isWhole = (series: readonly (readonly (number | null)[])[]): boolean =>
  series.every((values) => values.every((value) => value === null || Number.isInteger(value)));

export interface TopRow {
  /** The key's id, or the owner's external id. */
  readonly id: string;
  readonly verifications: number;
  readonly refused: number;
  readonly credits: number;
}

/** @throws Error if the rows do not have the columns of `topKeysQuery` or `topOwnersQuery`. */
export const readTopRows = (rows: readonly Record<string, unknown>[], of: "key_id" | "external_id"): TopRow[] =>
  rows.map((row) => ({
    id: text(row[of]),
    verifications: whole(row.verifications),
    refused: whole(row.refused),
    credits: whole(row.credits),
  }));

export interface LimitRow {
  readonly namespaceId: string;
  readonly identifier: string;
  readonly checks: number;
  readonly refused: number;
}

/** @throws Error if the rows do not have the columns of `refusingLimitsQuery`. */
export const readLimitRows = (rows: readonly Record<string, unknown>[]): LimitRow[] =>
  rows.map((row) => ({
    namespaceId: text(row.namespace_id),
    identifier: text(row.identifier),
    checks: whole(row.checks),
    refused: whole(row.refused),
  }));

export interface CheckRow {
  readonly timeMs: number;
  readonly checks: number;
  readonly refused: number;
}

/** @throws Error if the rows do not have the columns of `checksQuery`. */
export const readCheckRows = (rows: readonly Record<string, unknown>[]): CheckRow[] =>
  rows.map((row) => ({ timeMs: instant(row.time), checks: whole(row.checks), refused: whole(row.refused) }));

/** Returns the passed and the rejected checks of a namespace, one value per bucket; a bucket that is not counted is a gap. */
export function checksOverTime(rows: readonly CheckRow[], window: TimeWindow, countedUntilMs: number) {
  const byTime = new Map(rows.map((row) => [row.timeMs, row]));
  const times = bucketStarts(window);
  const valuesOf = (count: (row: CheckRow) => number): (number | null)[] =>
    times.map((ms) => {
      const row = byTime.get(ms);
      return row === undefined ? (ms < countedUntilMs ? 0 : null) : count(row);
    });
  const passed = valuesOf(({ checks, refused }) => checks - refused);
  const refused = valuesOf((row) => row.refused);
  return { times, passed, refused, passedTotal: sumOf(passed), refusedTotal: sumOf(refused) };
}

export type IdentifierRow = Omit<LimitRow, "namespaceId">;

/** @throws Error if the rows do not have the columns of `topIdentifiersQuery`. */
export const readIdentifierRows = (rows: readonly Record<string, unknown>[]): IdentifierRow[] =>
  rows.map((row) => ({ identifier: text(row.identifier), checks: whole(row.checks), refused: whole(row.refused) }));

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error("invalid response: expected a string");
}

function whole(value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new Error("invalid response: expected a number");
}

function instant(value: unknown): number {
  const ms = Date.parse(text(value));
  if (Number.isNaN(ms)) throw new Error("invalid response: expected a time");
  return ms;
}
