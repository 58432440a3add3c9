const DAY_MS = 86_400_000;

interface Range {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
}

/** Splits a range into complete UTC days and the remainders before and after. No returned range is empty. */
export function dayParts({ fromMs, toMs }: Range): { days: Range | undefined; rest: readonly Range[] } {
  const firstDayMs = Math.ceil(fromMs / DAY_MS) * DAY_MS;
  const lastDayMs = Math.floor(toMs / DAY_MS) * DAY_MS;
  if (firstDayMs >= lastDayMs) return { days: undefined, rest: notEmpty([{ fromMs, toMs }]) };
  return {
    days: { fromMs: firstDayMs, toMs: lastDayMs },
    rest: notEmpty([
      { fromMs, toMs: firstDayMs },
      { fromMs: lastDayMs, toMs },
    ]),
  };
}

const notEmpty = (ranges: readonly Range[]): Range[] => ranges.filter(({ fromMs, toMs }) => fromMs < toMs);
