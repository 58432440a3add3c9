/* Format and limits of keys, for code that cannot use `key-string.ts`, such as the dashboard. */

/** Maximum length of a key that verification accepts, in characters. */
export const KEY_LENGTH_MAX = 512;

/** Matches a SHA-256 in standard base64 with padding, as `hashKey` returns it. */
export const KEY_HASH = /^[A-Za-z0-9+/]{43}=$/;

/** The latest allowed expiry, Unix ms: 1 January 2100. */
export const EXPIRES_MAX_MS = 4_102_444_800_000;
