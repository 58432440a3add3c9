import { formatDuration } from "./duration.ts";
import type { Preset } from "./presets.tsx";

/* Form input for the limits of a key or an identity. */

export interface LimitDraft {
  /** Row id, which identifies the row while its name is edited. */
  readonly row: number;
  readonly name: string;
  readonly limit: number | undefined;
  /** In ms. */
  readonly duration: number | undefined;
  readonly autoApply: boolean;
}

type Limit = Omit<LimitDraft, "row">;

const NAME_LENGTH_MIN = 3;
const DURATION_MS_MIN = 1000;
const LIMITS_MAX = 50;

const UNITS: ReadonlyMap<number, string> = new Map([
  [1000, "second"],
  [60_000, "minute"],
  [3_600_000, "hour"],
  [86_400_000, "day"],
]);

/** Formats a limit: "1 request per hour", "100 requests per 90 s". */
export const limitText = (limit: number, duration: number): string =>
  `${limit.toLocaleString("en")} ${limit === 1 ? "request" : "requests"} per ${UNITS.get(duration) ?? formatDuration(duration)}`;

interface Rate {
  readonly limit: number;
  readonly duration: number;
}

const rate = (limit: number, duration: number): Preset<Rate> => ({
  label: limitText(limit, duration).replace(/ requests?/, ""),
  value: { limit, duration },
});

export const RATES: readonly Preset<Rate>[] = [
  rate(10, 1000),
  rate(100, 60_000),
  rate(1000, 3_600_000),
  rate(10_000, 86_400_000),
];

export const draftsOf = (limits: readonly Limit[]): readonly LimitDraft[] =>
  limits.map(({ name, limit, duration, autoApply }, row) => ({ row, name, limit, duration, autoApply }));

/** Returns the limits and a new one with an unused name. */
export function withNew(limits: readonly LimitDraft[], { limit, duration }: Rate): readonly LimitDraft[] {
  const names = new Set(limits.map(({ name }) => name.trim()));
  let name = "requests";
  for (let count = 2; names.has(name); count++) name = `requests-${count}`;
  const row = Math.max(-1, ...limits.map((one) => one.row)) + 1;
  return [...limits, { row, name, limit, duration, autoApply: true }];
}

export interface LimitFaults {
  readonly name?: string;
  readonly limit?: string;
  readonly duration?: string;
}

/** Returns the problems with a limit, by field. */
export function limitFaults({ row, name, limit, duration }: LimitDraft, all: readonly LimitDraft[]): LimitFaults {
  const isRepeated = all.some((other) => other.row !== row && other.name.trim() === name.trim());
  return {
    ...(name.trim().length < NAME_LENGTH_MIN
      ? { name: `At least ${NAME_LENGTH_MIN} characters.` }
      : isRepeated && { name: "Another limit has this name." }),
    ...((limit ?? 0) < 1 && { limit: "An integer of at least 1." }),
    ...((duration ?? 0) < DURATION_MS_MIN && { duration: "A duration of at least 1s, such as 1m or 1h." }),
  };
}

/** Returns the problem with the limits; `undefined` if all are complete. */
export function limitsProblem(limits: readonly LimitDraft[]): string | undefined {
  if (limits.length > LIMITS_MAX) return `At most ${LIMITS_MAX} limits.`;
  return limits.some((limit) => Object.keys(limitFaults(limit, limits)).length > 0)
    ? "A limit is incomplete."
    : undefined;
}

/** Returns the limits for a request body. The drafts must have no problems. */
export const limitsOf = (limits: readonly LimitDraft[]) =>
  limits.map(({ name, limit = 0, duration = 0, autoApply }) => ({ name: name.trim(), limit, duration, autoApply }));
