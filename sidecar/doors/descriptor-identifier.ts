import { createHash } from "node:crypto";

export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** As long as an identifier may be. */
const IDENTIFIER_MAX = 512;

/**
 * The identifier by which a descriptor of Envoy is counted, and which overrides name: `key=value` of each entry in order, with `|` between them,
 * such as `generic_key=checkout|remote_address=192.0.2.7`. In keys and values `%`, `|` and control characters are percent-encoded, in keys
 * `=` as well, so that no two descriptors have one identifier. One of more than 512 characters is replaced by `sha256:` and its hash,
 * because a client that sends a long value must not go uncounted.
 */
export function identifierOf(entries: readonly DescriptorEntry[]): string {
  const text = entries.map(({ key, value }) => `${escaped(key, IN_KEYS)}=${escaped(value, IN_VALUES)}`).join("|");
  return text.length <= IDENTIFIER_MAX ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

const IN_VALUES = /[%|\p{Cc}\u2028\u2029]/gu;
const IN_KEYS = /[=%|\p{Cc}\u2028\u2029]/gu;

const escaped = (text: string, unsafe: RegExp): string => text.toWellFormed().replace(unsafe, encodeURIComponent);
