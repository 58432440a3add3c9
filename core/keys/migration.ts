import { hash } from "node:crypto";
import * as z from "zod";
import { startOf } from "./key-string.ts";

/**
 * How keys that were issued elsewhere were hashed there (api/v2 section 12.4). `sha256`: the whole key, as we do it ourselves.
 * `prefixed`: the long token of `<prefix>_<short token>_<long token>` alone, in hexadecimal.
 */
export const MigrationAlgorithm = z.enum(["sha256", "prefixed"]);
export type MigrationAlgorithm = z.infer<typeof MigrationAlgorithm>;

const HEX_SHA256 = /^[0-9a-f]{64}$/i;

/** The form in which an imported hash is stored and looked up: hexadecimal means the same in either case, base64 does not. */
export const storedHash = (algorithm: MigrationAlgorithm, imported: string): string =>
  algorithm === "prefixed" && HEX_SHA256.test(imported) ? imported.toLowerCase() : imported;

export interface PrefixedKey {
  /** Of the long token, as `storedHash` has it. */
  readonly hash: string;
  /** What a key that is stored as ours shows of itself. */
  readonly start: string;
}

/**
 * Reads a key as one of the form `<prefix>_<short token>_<long token>`, whose prefix may contain underscores; undefined when it
 * is not. An empty long token would be no secret.
 */
export function readPrefixedKey(key: string): PrefixedKey | undefined {
  const parts = key.split("_");
  const longToken = parts.pop();
  const shortToken = parts.pop();
  if (longToken === undefined || longToken === "" || shortToken === undefined || parts.length === 0) return undefined;
  return {
    hash: hash("sha256", longToken, "hex"),
    start: startOf({ prefix: parts.join("_"), random: `${shortToken}_${longToken}` }),
  };
}

/**
 * Of entries with the same stored hash the last one, at the place of the first: what is said twice is meant once.
 */
export function lastOfEachHash<Entry extends { readonly hash: string }>(
  algorithm: MigrationAlgorithm,
  entries: readonly Entry[],
): Map<string, Entry> {
  const byHash = new Map<string, Entry>();
  for (const entry of entries) byHash.set(storedHash(algorithm, entry.hash), entry);
  return byHash;
}
