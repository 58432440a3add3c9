export const DAY_MS = 86_400_000;

/** The UTC date of an instant in Unix ms, `YYYY-MM-DD`. */
export const utcDate = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
