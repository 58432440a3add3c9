/* What a key and its hash look like, also where `key-string.ts` cannot run: in a browser. */

/** The most characters of a key that is verified. */
export const KEY_LENGTH_MAX = 512;

/** SHA-256 in standard base64 with padding, as `hashKey` makes it. */
export const KEY_HASH = /^[A-Za-z0-9+/]{43}=$/;
