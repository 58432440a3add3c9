import { randomInt } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PREFIX_LENGTH = 10;
const COUNTED_LENGTH = 6;
const COUNT_MAX = 36 ** COUNTED_LENGTH;

const randomPrefix = (): string =>
  Array.from({ length: PREFIX_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");

/**
 * Returns a source of id suffixes with 16 letters and digits each. They are unique but not secret: a random prefix of 59 bits per process,
 * followed by a counter, which costs less per request than new random bytes.
 */
export function makeIdSource(): () => string {
  let prefix = randomPrefix();
  let count = 0;
  return () => {
    if (count === COUNT_MAX) {
      prefix = randomPrefix();
      count = 0;
    }
    return prefix + (count++).toString(36).padStart(COUNTED_LENGTH, "0");
  };
}
