import { hash } from "node:crypto";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const START_CHARACTERS = 4;

/**
 * Base58 in the alphabet of Bitcoin, which leaves out `0`, `O`, `I` and `l`: the bytes are one big-endian number, and each
 * leading zero byte is one `1`. Long division by 58; quadratic, which is nothing at the 255 bytes that a key may have.
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

/**
 * Makes the secret of a key out of random bytes (16 to 255, from a cryptographic source). `start` is the only part of the
 * secret that is ever shown again.
 */
export function makeKeyString({ prefix, randomBytes }: { prefix?: string | undefined; randomBytes: Uint8Array }): {
  key: string;
  start: string;
} {
  const random = encodeBase58(randomBytes);
  return { key: leadOf(prefix) + random, start: startOf({ prefix, random }) };
}

/** What may be shown of a key whose secret is `random`, behind the prefix. */
export const startOf = ({ prefix, random }: { prefix?: string | undefined; random: string }): string =>
  leadOf(prefix) + random.slice(0, START_CHARACTERS);

const leadOf = (prefix: string | undefined): string => (prefix === undefined || prefix === "" ? "" : `${prefix}_`);

/**
 * The form in which keys are stored and looked up: SHA-256 over the UTF-8 bytes of the whole string, standard base64 with
 * padding, 44 characters. A key is case-sensitive and is not trimmed. A plain hash suffices because the secret has at
 * least 128 random bits; there is nothing to guess slowly.
 */
export function hashKey(key: string): string {
  return hash("sha256", key, "base64");
}
