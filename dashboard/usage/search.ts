import { textsIn } from "../search-params.ts";
import { type Bucket, isPreset, type Preset, type Range } from "./buckets.ts";

/*
 * URL parameters of the Usage page. Every member is optional. Anyone may have written the URL, so invalid values are omitted.
 */

export interface UsageSearch {
  readonly range?: Preset;
  /** Start of a custom range, Unix ms; requires `to` and replaces `range`. */
  readonly from?: number;
  readonly to?: number;
  readonly api?: string;
  readonly key?: string;
  readonly owner?: string;
  readonly outcome?: string;
}

const DEFAULT_RANGE: Preset = "24h";

const instant = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= 8.64e15 ? value : undefined;

export function readUsageSearch(search: Readonly<Record<string, unknown>>): UsageSearch {
  const [from, to] = [instant(search.from), instant(search.to)];
  return {
    ...(isPreset(search.range) && search.range !== DEFAULT_RANGE ? { range: search.range } : {}),
    ...(from !== undefined && to !== undefined && from < to ? { from, to } : {}),
    ...textsIn(search, "api", "key", "owner", "outcome"),
  };
}

export const rangeOf = ({ range = DEFAULT_RANGE, from, to }: UsageSearch): Range =>
  from === undefined || to === undefined ? range : { fromMs: from, toMs: to };

/** Returns the same parameters with another range. */
export function withRange({ range: _, from: __, to: ___, ...rest }: UsageSearch, range: Range): UsageSearch {
  if (typeof range !== "string") return { ...rest, from: Math.floor(range.fromMs), to: Math.ceil(range.toMs) };
  return range === DEFAULT_RANGE ? rest : { ...rest, range };
}

/** Maximum time range of the latency chart, about one day, because latencies are computed from single events. */
const LATENCY_HOURS_MAX = 25;
export const showsLatency = ({ fromMs, toMs }: { fromMs: number; toMs: number; bucket: Bucket }): boolean =>
  toMs - fromMs <= LATENCY_HOURS_MAX * 3_600_000;
