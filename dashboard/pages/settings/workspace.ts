export const quotaText = (perMinute: number | null): string =>
  perMinute === null ? "unlimited" : `${perMinute.toLocaleString("en")} per minute`;
