import { createHash } from "node:crypto";

export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** Maximum length of an identifier. */
const IDENTIFIER_MAX = 512;

/**
 * Returns the identifier of an Envoy descriptor, under which requests are counted and to which overrides refer. It consists of `key=value`
 * for each entry in order, separated by `|`, such as `generic_key=checkout|remote_address=192.0.2.7`. `%`, `|` and control characters are
 * percent-encoded in keys and values, and `=` in keys, so that identifiers are unique. An identifier longer than 512 characters is replaced
 * by `sha256:` and its hash, because a client that sends a long value must still be counted.
 */
export function identifierOf(entries: readonly DescriptorEntry[]): string {
  const text = entries.map(({ key, value }) => `${escaped(key, IN_KEYS)}=${escaped(value, IN_VALUES)}`).join("|");
  return text.length <= IDENTIFIER_MAX ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

const IN_VALUES = /[%|\p{Cc}\u2028\u2029]/gu;
const IN_KEYS = /[=%|\p{Cc}\u2028\u2029]/gu;

const escaped = (text: string, unsafe: RegExp): string => text.toWellFormed().replace(unsafe, encodeURIComponent);
