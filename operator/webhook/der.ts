/* Encodes the DER (X.690) values that a certificate contains. Each function returns one complete value: tag, length and content. */

function value(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => value(0x30, ...items);
export const set = (...items: readonly Uint8Array[]): Buffer => value(0x31, ...items);
export const octets = (content: Uint8Array): Buffer => value(0x04, content);
export const utf8 = (text: string): Buffer => value(0x0c, Buffer.from(text));
export const boolean = (is: boolean): Buffer => value(0x01, Buffer.from([is ? 0xff : 0]));

/** Encodes a positive integer, most significant byte first. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first));
  // A leading 1 bit would make the integer negative, so a zero byte precedes it.
  return value(0x02, ...((digits[0] ?? 0) >= 0x80 ? [Buffer.from([0])] : []), digits);
}

/** Encodes a bit string. `unused` is the number of unused bits at its end. */
export const bits = (content: Uint8Array, unused = 0): Buffer => value(0x03, Buffer.from([unused]), content);

/** Encodes an object identifier, such as `1.2.840.10045.4.3.2`. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return value(0x06, ...[first * 40 + second, ...rest].map(base128));
}

function base128(number: number): Buffer {
  const digits = [number % 128];
  for (let rest = Math.floor(number / 128); rest > 0; rest = Math.floor(rest / 128))
    digits.unshift((rest % 128) | 0x80);
  return Buffer.from(digits);
}

/** Encodes a timestamp in seconds. RFC 5280 requires the short form up to 2049. */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return digits < "2050" ? value(0x17, Buffer.from(digits.slice(2))) : value(0x18, Buffer.from(digits));
}

/** Encodes a context-specific value. If `constructed`, `content` contains other values, otherwise raw bytes. */
export const tagged = (number: number, content: Uint8Array, { constructed }: { constructed: boolean }): Buffer =>
  value(0x80 | (constructed ? 0x20 : 0) | number, content);
