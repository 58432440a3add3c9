import { hash } from "node:crypto";
import * as z from "zod";
import { startOf } from "./key-string.ts";

/**
 * Hash algorithms of keys that were issued elsewhere (api-v2.md section 12.4). `sha256`: over the complete key, as in Postern. `prefixed`:
 * only over the long token of `<prefix>_<short token>_<long token>`, in hexadecimal.
 */
export const MigrationAlgorithm = z.enum(["sha256", "prefixed"]);
export type MigrationAlgorithm = z.infer<typeof MigrationAlgorithm>;

const HEX_SHA256 = /^[0-9a-f]{64}$/i;

/** Returns the form in which an imported hash is stored and looked up. Hexadecimal text is case-insensitive, base64 is not. */
export const storedHash = (algorithm: MigrationAlgorithm, imported: string): string =>
  algorithm === "prefixed" && HEX_SHA256.test(imported) ? imported.toLowerCase() : imported;

export interface PrefixedKey {
  /** Hash of the long token, as `storedHash` returns it. */
  readonly hash: string;
  /** Displayable part of the key, as for a key that Postern created. */
  readonly start: string;
}

/**
 * Parses a key of the form `<prefix>_<short token>_<long token>`; the prefix may contain underscores. Returns `undefined` for any other
 * form, and for an empty long token, because the key would then have no secret.
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

/** Keeps the last of the entries with the same stored hash, at the position of the first one. */
export function lastOfEachHash<Entry extends { readonly hash: string }>(
  algorithm: MigrationAlgorithm,
  entries: readonly Entry[],
): Map<string, Entry> {
  const byHash = new Map<string, Entry>();
  for (const entry of entries) byHash.set(storedHash(algorithm, entry.hash), entry);
  return byHash;
}
