import { Code } from "../../../core/verification/codes.ts";
import type { CountOrder, CountQuestion, UsageCount } from "../../analytics/counts.ts";
import { countSlices, HOUR_MS, sliceStart, slicesBetween, wholeHours } from "./slices.ts";

/*
 * How often keys were verified, as those ask who write no SQL: per slice of time, per target, or both.
 */

/** The most rows of an answer that has a row for each slice, with events or without. */
export const FILLED_MAX = 10_000;
/** The most rows of any other answer. */
export const COUNTED_MAX = 100_000;

/** Events that lie further ahead are not stored. */
const AHEAD_MS_MAX = 25 * HOUR_MS;

export interface UsageQuestion extends Omit<CountQuestion, "fromMs" | "toMs" | "order" | "rowsMax"> {
  /** Unix ms. The whole hour of each counts. */
  readonly startMs: number;
  readonly endMs: number;
  /** undefined: by time with slices, else the largest total first. */
  readonly order: CountOrder | undefined;
  /** The most rows of the answer, after they were ordered; undefined: all. */
  readonly limit: number | undefined;
}

interface Clock {
  readonly nowMs: number;
  /** Unix ms: nothing before it is counted. */
  readonly visibleFromMs: number;
}

export type CountVerifications = (question: CountQuestion) => Promise<readonly UsageCount[]>;

/** `tooMany`: the answer would have more rows than `FILLED_MAX` or `COUNTED_MAX`. */
export type Usage =
  | { readonly kind: "counted"; readonly rows: readonly UsageCount[] }
  | { readonly kind: "tooMany"; readonly rowsMax: number };

/**
 * Counts. Slices without a target are all there, those without events with zeros; slices of a target, and targets, are there when they had
 * events. With neither there is exactly one row.
 */
export async function countUsage(count: CountVerifications, question: UsageQuestion, clock: Clock): Promise<Usage> {
  const { slice, by, limit = COUNTED_MAX } = question;
  if (slice === undefined || by.length > 0) {
    const order: CountOrder = question.order ?? {
      by: slice === undefined ? "total" : "time",
      descending: slice === undefined,
    };
    const rows = await countWithin(count, question, clock, { order, rowsMax: Math.min(limit, COUNTED_MAX + 1) });
    if (rows.length > COUNTED_MAX) return { kind: "tooMany", rowsMax: COUNTED_MAX };
    if (rows.length === 0 && slice === undefined && by.length === 0)
      return { kind: "counted", rows: [nothing(undefined)] };
    return { kind: "counted", rows };
  }
  const { startMs, endMs } = question;
  if (countSlices(slice, startMs, endMs) > FILLED_MAX) return { kind: "tooMany", rowsMax: FILLED_MAX };
  const found = await countWithin(count, question, clock, { order: BY_TIME, rowsMax: FILLED_MAX });
  const filled = fillSlices(slicesBetween(slice, startMs, endMs), found);
  return { kind: "counted", rows: inOrder(filled, question.order ?? BY_TIME).slice(0, limit) };
}

const BY_TIME: CountOrder = { by: "time", descending: false };

/** Asks the store about the part of the window in which there can be events: rows of what was counted, without a limit of their own. */
export async function countWithin(
  count: CountVerifications,
  {
    startMs,
    endMs,
    workspaceId,
    keySpaceId,
    keyIds,
    identityId,
    tags,
    slice,
    by,
  }: Omit<UsageQuestion, "order" | "limit">,
  { nowMs, visibleFromMs }: Clock,
  { order, rowsMax }: Pick<CountQuestion, "order" | "rowsMax">,
): Promise<readonly UsageCount[]> {
  const window = wholeHours(startMs, endMs);
  const fromMs = Math.max(window.fromMs, sliceStart("hour", visibleFromMs));
  const toMs = Math.min(window.toMs, sliceStart("hour", nowMs + AHEAD_MS_MAX));
  if (fromMs >= toMs) return [];
  return count({ workspaceId, keySpaceId, keyIds, identityId, tags, fromMs, toMs, slice, by, order, rowsMax });
}

/** A row for each slice, in their order: what was counted in it, else zeros. */
export function fillSlices(sliceStarts: readonly number[], counted: readonly UsageCount[]): UsageCount[] {
  const byTime = new Map(counted.map((row) => [row.timeMs, row]));
  return sliceStarts.map((timeMs) => byTime.get(timeMs) ?? nothing(timeMs));
}

/** Rows of slices in this order; equal ones by time. */
export function inOrder(rows: readonly UsageCount[], { by, descending }: CountOrder): UsageCount[] {
  const rankOf = (row: UsageCount): number =>
    by === "time" ? (row.timeMs ?? 0) : by === "total" ? row.total : row.byCode[by];
  return rows.toSorted((a, b) => {
    const difference = rankOf(a) - rankOf(b);
    return (descending ? -difference : difference) || (a.timeMs ?? 0) - (b.timeMs ?? 0);
  });
}

const ZEROS = Object.fromEntries(Code.options.map((code) => [code, 0])) as Record<Code, number>;

const nothing = (timeMs: number | undefined): UsageCount => ({
  timeMs,
  keyId: undefined,
  identity: undefined,
  tags: undefined,
  tag: undefined,
  byCode: ZEROS,
  total: 0,
});
