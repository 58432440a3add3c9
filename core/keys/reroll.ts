import { EXPIRES_MAX_MS } from "./key-hash.ts";

const MINUTE_MS = 60_000;

/**
 * Returns the prefix for the successor of a key: the text before the last underscore of `start`. The prefix may contain underscores; the
 * random part does not. Returns `undefined` for a key without a prefix.
 */
export function successorPrefix(start: string): string | undefined {
  const end = start.lastIndexOf("_");
  return end < 1 ? undefined : start.slice(0, end);
}

/**
 * Returns the expiry of a key that has a successor, Unix ms: now, or the end of `gracePeriodMs`, rounded up to a full minute. The result is
 * never later than the key's own expiry or EXPIRES_MAX_MS.
 */
export function expiryOfPredecessor({
  nowMs,
  gracePeriodMs,
  expiresMs,
}: {
  readonly nowMs: number;
  readonly gracePeriodMs: number;
  readonly expiresMs: number | undefined;
}): number {
  const endMs = gracePeriodMs === 0 ? nowMs : Math.ceil((nowMs + gracePeriodMs) / MINUTE_MS) * MINUTE_MS;
  return Math.min(endMs, expiresMs ?? EXPIRES_MAX_MS);
}
