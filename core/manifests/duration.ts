import * as z from "zod";

/*
 * Durations in manifests: text in Kubernetes notation (`500ms`, `60s`, `1h30m`), or an integer of milliseconds. Everywhere else in Postern
 * a duration is in milliseconds.
 */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const TEXT_LENGTH_MAX = 32;
export const DURATION_PATTERN = "^([0-9]+(ms|s|m|h))+$";
const TEXT = new RegExp(DURATION_PATTERN);
const PART = /([0-9]+)(ms|s|m|h)/g;

const EXPECTED = "expected a duration such as 500ms, 60s or 1h30m, or a positive integer of milliseconds";

/** Returns the duration in milliseconds. Throws `RangeError` if it is not a duration, or exceeds 2^53 − 1. */
export function parseDuration(duration: string | number): number {
  const ms = typeof duration === "number" ? duration : sumOfParts(duration);
  if (!Number.isSafeInteger(ms) || ms < 0) throw new RangeError(`${JSON.stringify(duration)}: ${EXPECTED}`);
  return ms;
}

function sumOfParts(text: string): number {
  if (text.length > TEXT_LENGTH_MAX || !TEXT.test(text)) return Number.NaN;
  let ms = 0;
  for (const [, count, unit = ""] of text.matchAll(PART)) ms += Number(count) * (UNIT_MS[unit] ?? Number.NaN);
  return ms;
}

/** Maximum duration: one hundred years. Go programs such as the Kubernetes API server cannot represent durations of three hundred years. */
const HOURS_MAX = 876_000;
const MS_MAX = HOURS_MAX * 3_600_000;

/**
 * Returns the duration in milliseconds, or `undefined` if it is invalid. Rules that compare several fields use this function, because a
 * field may be invalid.
 */
export function findDuration(duration: string | number): number | undefined {
  try {
    return parseDuration(duration);
  } catch {
    return undefined;
  }
}

const isDurationOf = (duration: string | number, msMin: number): boolean => {
  const ms = findDuration(duration);
  return ms !== undefined && ms >= msMin && ms <= MS_MAX;
};

/** Returns CEL for the milliseconds of a field that is a string or an integer. `getMilliseconds` returns the total, not a remainder. */
export const celMilliseconds = (field: string): string =>
  `(type(${field}) == int ? int(${field}) : duration(${field}).getMilliseconds())`;

/** Returns a schema for a duration of at least `msMin` milliseconds, and at most one hundred years. */
export function durationOf({ msMin }: { msMin: number }) {
  return z
    .union([z.string().max(TEXT_LENGTH_MAX), z.int()], { error: EXPECTED })
    .refine((duration) => isDurationOf(duration, msMin), {
      error: `${EXPECTED}, at least ${msMin} ms and at most ${HOURS_MAX}h`,
    })
    .meta({
      "x-kubernetes-int-or-string": true,
      pattern: DURATION_PATTERN,
      maxLength: TEXT_LENGTH_MAX,
      "x-kubernetes-validations": [
        {
          rule: `type(self) == int ? self >= ${msMin} && self <= ${MS_MAX} : duration(self) >= duration('${msMin}ms') && duration(self) <= duration('${HOURS_MAX}h')`,
          message: `must be at least ${msMin} ms, and at most ${HOURS_MAX}h`,
        },
      ],
    });
}
