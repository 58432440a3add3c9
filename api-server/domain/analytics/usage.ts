import type { CountOrder, CountQuery, UsageCount } from "../../../analytics/counts.ts";
import { Code } from "../../../core/verification/codes.ts";
import { countSlices, fullHours, HOUR_MS, sliceStart, slicesBetween } from "./slices.ts";

/* Counts verifications per time slice, per target, or both, for callers that do not use SQL. */

/** Maximum number of rows in a response with one row per slice, including empty slices. */
export const FILLED_MAX = 10_000;
/** Maximum number of rows in a response without empty slices. */
export const COUNTED_MAX = 100_000;

/** How far in the future the time of an event can be. Events beyond that are not stored. */
const AHEAD_MS_MAX = 25 * HOUR_MS;

export interface UsageQuery extends Omit<CountQuery, "fromMs" | "toMs" | "order" | "rowsMax"> {
  /** Start and end of the window, Unix ms. The window is expanded to full hours. */
  readonly startMs: number;
  readonly endMs: number;
  /** Order of the rows; `undefined` sorts by time if there are slices, otherwise by total, largest first. */
  readonly order: CountOrder | undefined;
  /** Maximum number of rows in the response, after sorting; `undefined` for all. */
  readonly limit: number | undefined;
}

interface Clock {
  readonly nowMs: number;
  /** Start of the period for which events are counted, Unix ms. */
  readonly visibleFromMs: number;
}

type CountVerifications = (question: CountQuery) => Promise<readonly UsageCount[]>;

/** Result of a count. `tooMany`: the response would have more rows than `FILLED_MAX` or `COUNTED_MAX`. */
export type Usage =
  | { readonly kind: "counted"; readonly rows: readonly UsageCount[] }
  | { readonly kind: "tooMany"; readonly rowsMax: number };

/**
 * Counts verifications. If only time slices are requested, empty slices are included with zeros. If targets are requested, the result
 * contains only targets with events, or only their slices with events. If neither is requested, the result has exactly one row.
 */
export async function countUsage(count: CountVerifications, question: UsageQuery, clock: Clock): Promise<Usage> {
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

/** Queries the analytics store for the part of the window that can contain events. Returns at most `rowsMax` rows. */
export async function countWithin(
  count: CountVerifications,
  {
    startMs,
    endMs,
    workspaceId,
    keySpaceIds,
    keyIds,
    identityId,
    tags,
    slice,
    by,
  }: Omit<UsageQuery, "order" | "limit">,
  { nowMs, visibleFromMs }: Clock,
  { order, rowsMax }: Pick<CountQuery, "order" | "rowsMax">,
): Promise<readonly UsageCount[]> {
  const window = fullHours(startMs, endMs);
  const fromMs = Math.max(window.fromMs, sliceStart("hour", visibleFromMs));
  const toMs = Math.min(window.toMs, sliceStart("hour", nowMs + AHEAD_MS_MAX));
  if (fromMs >= toMs) return [];
  return count({ workspaceId, keySpaceIds, keyIds, identityId, tags, fromMs, toMs, slice, by, order, rowsMax });
}

/** Returns a row for each slice, in order: its counts, or zeros. */
export function fillSlices(sliceStarts: readonly number[], counted: readonly UsageCount[]): UsageCount[] {
  const byTime = new Map(counted.map((row) => [row.timeMs, row]));
  return sliceStarts.map((timeMs) => byTime.get(timeMs) ?? nothing(timeMs));
}

/** Sorts slices by a count, and slices with equal counts by time. */
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
