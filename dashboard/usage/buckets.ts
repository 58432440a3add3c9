/*
 * Time windows and buckets of charts. All times are Unix ms; buckets follow the UTC calendar, because the database counts in UTC buckets.
 */

export const BUCKETS = ["minute", "hour", "day"] as const;
export type Bucket = (typeof BUCKETS)[number];

export const BUCKET_MS: Readonly<Record<Bucket, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Lengths of the preset ranges, which end now. The number of buckets includes the current one. */
const PRESETS = {
  "1h": { bucket: "minute", count: 60, words: "the last hour" },
  "6h": { bucket: "minute", count: 360, words: "the last 6 hours" },
  "24h": { bucket: "hour", count: 24, words: "the last 24 hours" },
  "7d": { bucket: "hour", count: 168, words: "the last 7 days" },
  "30d": { bucket: "day", count: 30, words: "the last 30 days" },
} as const satisfies Readonly<Record<string, { bucket: Bucket; count: number; words: string }>>;

export type Preset = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as readonly Preset[];
export const isPreset = (text: unknown): text is Preset => typeof text === "string" && Object.hasOwn(PRESETS, text);
export const wordsOfPreset = (preset: Preset): string => PRESETS[preset].words;

/** A preset, or a custom range. */
export type Range = Preset | Between;

export interface Between {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A range of complete buckets; `toMs` is exclusive. */
export interface TimeWindow extends Between {
  readonly bucket: Bucket;
}

/**
 * Maximum range of a chart with minute buckets. A chart shows up to 360 minute buckets or 216 hour buckets; a longer range has day buckets.
 */
const MINUTES_UP_TO_MS = 6 * BUCKET_MS.hour;
const HOURS_UP_TO_MS = 9 * BUCKET_MS.day;
/** Maximum number of days in a chart. It exceeds the usual retention, and limits the range that a hand-written URL can request. */
const DAYS_MAX = 400;

export const bucketStart = (bucket: Bucket, ms: number): number =>
  Math.floor(ms / BUCKET_MS[bucket]) * BUCKET_MS[bucket];

const bucketFor = (spanMs: number): Bucket =>
  spanMs <= MINUTES_UP_TO_MS ? "minute" : spanMs <= HOURS_UP_TO_MS ? "hour" : "day";

/**
 * Returns the complete buckets that the range touches, at least one. Data before `visibleFromMs` cannot be queried, so the window begins no
 * earlier than the first bucket that lies completely after that time.
 */
export function windowOf(range: Range, nowMs: number, visibleFromMs = Number.NEGATIVE_INFINITY): TimeWindow {
  const { fromMs, toMs, bucket } = typeof range === "string" ? ofPreset(range, nowMs) : ofSpan(range);
  const lengthMs = BUCKET_MS[bucket];
  const firstMs = Number.isFinite(visibleFromMs) ? Math.ceil(visibleFromMs / lengthMs) * lengthMs : visibleFromMs;
  const beginMs = Math.max(fromMs, firstMs, toMs - DAYS_MAX * BUCKET_MS.day);
  return { bucket, fromMs: beginMs, toMs: Math.max(toMs, beginMs + lengthMs) };
}

function ofPreset(preset: Preset, nowMs: number): TimeWindow {
  const { bucket, count } = PRESETS[preset];
  const toMs = bucketStart(bucket, nowMs) + BUCKET_MS[bucket];
  return { bucket, fromMs: toMs - count * BUCKET_MS[bucket], toMs };
}

function ofSpan(range: Between): TimeWindow {
  const [beginMs, endMs] = range.fromMs <= range.toMs ? [range.fromMs, range.toMs] : [range.toMs, range.fromMs];
  const bucket = bucketFor(endMs - beginMs);
  const lengthMs = BUCKET_MS[bucket];
  const fromMs = bucketStart(bucket, beginMs);
  return { bucket, fromMs, toMs: Math.max(Math.ceil(endMs / lengthMs) * lengthMs, fromMs + lengthMs) };
}

/** Returns the start times of the window's buckets, ascending. */
export function bucketStarts({ fromMs, toMs, bucket }: TimeWindow): number[] {
  const lengthMs = BUCKET_MS[bucket];
  return Array.from({ length: Math.ceil((toMs - fromMs) / lengthMs) }, (_, index) => fromMs + index * lengthMs);
}

/** Returns the refresh interval of a chart with these buckets. Each query counts against the workspace's hourly quota. */
export const refreshMsOf = (bucket: Bucket): number => ({ minute: 60_000, hour: 180_000, day: 600_000 })[bucket];
