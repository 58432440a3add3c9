/** The latest allowed expiry, Unix ms: 1 January 2100. */
export const EXPIRES_MAX_MS = 4_102_444_800_000;
