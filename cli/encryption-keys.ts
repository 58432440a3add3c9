import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ENCRYPTION_KEY_BYTES, type EncryptionKey } from "../api-server/keys/key-vault.ts";
import { type Io, UsageError } from "./command.ts";
import { readOptionFile } from "./system-errors.ts";

/*
 * Encryption keys for recoverable keys, written as `ID:BASE64` and separated by commas or newlines, so that the same text works in a
 * variable and in a file of a Kubernetes Secret. Error messages contain no part of the text that may be secret.
 */

/** Encryption keys: the first one encrypts, all of them decrypt. */
export type EncryptionKeys = readonly [EncryptionKey, ...EncryptionKey[]];

const VARIABLE = "POSTERN_ENCRYPTION_KEYS";
const KEY_ID = /^[a-zA-Z0-9_-]{1,64}$/;
/** Base64 with or without padding, in either alphabet of RFC 4648. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/**
 * Returns the keys from the file or the environment; `undefined` if neither is set. Throws a `UsageError` that names the problem and its
 * position.
 */
export function readEncryptionKeys(file: string | undefined, env: Io["env"]): EncryptionKeys | undefined {
  const text = env[VARIABLE];
  const isInEnvironment = text !== undefined && text !== "";
  if (file === undefined) return isInEnvironment ? parseEncryptionKeys(text, VARIABLE) : undefined;
  if (isInEnvironment) throw new UsageError(`${VARIABLE} and --encryption-keys-file exclude each other`);
  return parseEncryptionKeys(readOptionFile("encryption-keys-file", file), file);
}

/** @param source name of the file or variable that contains the text, for the `UsageError`. */
export function parseEncryptionKeys(text: string, source: string): EncryptionKeys {
  const entries = text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  const keys = entries.map((entry, index) => parseEntry(entry, `${source}, entry ${index + 1}`));
  const [first, ...rest] = keys;
  if (first === undefined) throw new UsageError(`${source} contains no encryption key`);
  if (new Set(keys.map(({ id }) => id)).size !== keys.length) {
    throw new UsageError(`${source} contains two encryption keys with the same id`);
  }
  return [first, ...rest];
}

function parseEntry(entry: string, where: string): EncryptionKey {
  const colon = entry.indexOf(":");
  const id = entry.slice(0, Math.max(0, colon));
  const base64 = entry.slice(colon + 1);
  if (!KEY_ID.test(id)) {
    throw new UsageError(`${where}: expected ID:BASE64 with an id of 1 to 64 letters, digits, "_" and "-"`);
  }
  const secret = BASE64.test(base64) ? Buffer.from(base64, "base64") : Buffer.alloc(0);
  if (secret.length !== ENCRYPTION_KEY_BYTES) {
    throw new UsageError(
      `${where}: ${id} must be ${ENCRYPTION_KEY_BYTES} bytes in base64; \`openssl rand -base64 ${ENCRYPTION_KEY_BYTES}\` creates a key`,
    );
  }
  return { id, secret };
}

/**
 * Returns the encryption key of `postern dev`, which is stored in the data directory and readable only by the owner. The first start
 * creates the key.
 */
export function keepEncryptionKeys(dataDir: string): EncryptionKeys {
  const file = join(dataDir, "encryption-keys");
  if (!existsSync(file)) {
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(file, `dev:${randomBytes(ENCRYPTION_KEY_BYTES).toString("base64")}\n`, { mode: 0o600, flag: "wx" });
  }
  return parseEncryptionKeys(readOptionFile("encryption-keys-file", file), file);
}
