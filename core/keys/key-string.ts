import { hash } from "node:crypto";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const START_CHARACTERS = 4;

/** Minimum length of a root key: 22 base58 characters are 128 bits, which cannot be guessed. */
export const ROOT_KEY_LENGTH_MIN = 22;

/**
 * Encodes bytes in base58 with Bitcoin's alphabet, which omits `0`, `O`, `I` and `l`. The bytes are one big-endian number; each leading
 * zero byte becomes one `1`. The long division by 58 takes quadratic time, which is fast enough for up to 255 bytes.
 */
export function encodeBase58(bytes: Uint8Array): string {
  const digits: number[] = [];
  for (const byte of bytes) {
    let carry = byte;
    for (let i = 0; i < digits.length; i++) {
      carry += (digits[i] ?? 0) * 256;
      digits[i] = carry % 58;
      carry = Math.floor(carry / 58);
    }
    for (; carry > 0; carry = Math.floor(carry / 58)) digits.push(carry % 58);
  }
  const firstNonZero = bytes.findIndex((byte) => byte !== 0);
  let text = "1".repeat(firstNonZero === -1 ? bytes.length : firstNonZero);
  for (let i = digits.length - 1; i >= 0; i--) text += ALPHABET.charAt(digits[i] ?? 0);
  return text;
}

/** Creates a key string from random bytes (16 to 255, from a cryptographic source). `start` is the only part that can be shown later. */
export function makeKeyString({ prefix, randomBytes }: { prefix?: string | undefined; randomBytes: Uint8Array }): {
  key: string;
  start: string;
} {
  const random = encodeBase58(randomBytes);
  return { key: leadOf(prefix) + random, start: startOf({ prefix, random }) };
}

/** Returns the displayable part of a key with this prefix and random part. */
export const startOf = ({ prefix, random }: { prefix?: string | undefined; random: string }): string =>
  leadOf(prefix) + random.slice(0, START_CHARACTERS);

const leadOf = (prefix: string | undefined): string => (prefix === undefined || prefix === "" ? "" : `${prefix}_`);

/**
 * Returns the form in which keys are stored and looked up: SHA-256 over the UTF-8 bytes of the complete string, in standard base64 with
 * padding, 44 characters. A key is case-sensitive and is not trimmed. A slow hash is not required, because the string has at least 128
 * random bits.
 */
export function hashKey(key: string): string {
  return hash("sha256", key, "base64");
}
