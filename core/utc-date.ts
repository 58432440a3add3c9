export const DAY_MS = 86_400_000;

/** Returns the UTC date of a timestamp in Unix ms, `YYYY-MM-DD`. */
export const utcDate = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
