/*
 * Which part of time a picture shows, and in how many steps. All instants are Unix ms; buckets are parts of UTC's calendar, because the store
 * counts in them.
 */

export const BUCKETS = ["minute", "hour", "day"] as const;
export type Bucket = (typeof BUCKETS)[number];

export const BUCKET_MS: Readonly<Record<Bucket, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Up to now. The bucket that is running counts as one of them. */
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

/** A preset, or a part that somebody has chosen. */
export type Range = Preset | Between;

export interface Between {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Whole buckets. `toMs` is exclusive. */
export interface TimeWindow extends Between {
  readonly bucket: Bucket;
}

/** As many points as a screen has room for, and rows as an answer: up to 360 minutes, 216 hours, or any number of days. */
const MINUTES_UP_TO_MS = 6 * BUCKET_MS.hour;
const HOURS_UP_TO_MS = 9 * BUCKET_MS.day;
/** No picture shows more days than any workspace keeps as a rule; it bounds what a hand-written address can ask for. */
const DAYS_MAX = 400;

export const bucketStart = (bucket: Bucket, ms: number): number =>
  Math.floor(ms / BUCKET_MS[bucket]) * BUCKET_MS[bucket];

const bucketFor = (spanMs: number): Bucket =>
  spanMs <= MINUTES_UP_TO_MS ? "minute" : spanMs <= HOURS_UP_TO_MS ? "hour" : "day";

/**
 * The whole buckets that the range touches, at least one. `visibleFromMs`: nothing older can be asked for; the window begins with the first
 * bucket that lies wholly after it.
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

/** The starts of the window's buckets, ascending. */
export function bucketStarts({ fromMs, toMs, bucket }: TimeWindow): number[] {
  const lengthMs = BUCKET_MS[bucket];
  return Array.from({ length: Math.ceil((toMs - fromMs) / lengthMs) }, (_, index) => fromMs + index * lengthMs);
}

/** How often a picture of these buckets asks again: each question counts against the workspace's quota of an hour. */
export const refreshMsOf = (bucket: Bucket): number => ({ minute: 60_000, hour: 180_000, day: 600_000 })[bucket];
