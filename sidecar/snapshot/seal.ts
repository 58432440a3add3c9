import { type CipherGCM, createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/*
 * Format of a snapshot file:
 *
 *   MAGIC   identifier of the format, unencrypted
 *   salt    32 random bytes: each file has its own key and nonce, derived from the salt and the secret (HKDF-SHA256)
 *   …       contents, encrypted with AES-256-GCM
 *   tag     16 bytes
 *
 * MAGIC and the owner are authenticated with the contents, so a gate cannot open a file of another gate, policy or version. A gate uses no
 * part of a file before it has verified the complete file.
 */

const MAGIC = Buffer.from("postern-snapshot 1\n");
const SALT_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Number of bytes of a file in addition to its contents. */
export const SEAL_BYTES = MAGIC.length + SALT_BYTES + TAG_BYTES;

export interface Seal {
  /** Secret that only the gates of this workload have. */
  readonly secret: string;
  /** Identity of the snapshot's owner. A file can only be opened with the same values in the same order. */
  readonly owner: readonly string[];
}

/** Encrypts one file, chunk by chunk, in order. */
export class Sealer {
  readonly head: Buffer;
  readonly #cipher: CipherGCM;

  constructor(seal: Seal) {
    const salt = randomBytes(SALT_BYTES);
    const { key, nonce } = deriveKey(seal.secret, salt);
    this.head = Buffer.concat([MAGIC, salt]);
    this.#cipher = createCipheriv("aes-256-gcm", key, nonce);
    this.#cipher.setAAD(authenticated(seal));
  }

  add(text: string): Buffer {
    return this.#cipher.update(text, "utf8");
  }

  end(): Buffer {
    return Buffer.concat([this.#cipher.final(), this.#cipher.getAuthTag()]);
  }
}

/** Returns the contents; `undefined` if the file has another owner, is incomplete or was modified. */
export function unseal(bytes: Buffer, seal: Seal): Buffer | undefined {
  if (bytes.length < SEAL_BYTES || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const begin = MAGIC.length + SALT_BYTES;
  const end = bytes.length - TAG_BYTES;
  const { key, nonce } = deriveKey(seal.secret, bytes.subarray(MAGIC.length, begin));
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(authenticated(seal));
  decipher.setAuthTag(bytes.subarray(end));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(begin, end)), decipher.final()]);
  } catch {
    return undefined;
  }
}

const authenticated = ({ owner }: Seal): Buffer => Buffer.concat([MAGIC, Buffer.from(JSON.stringify(owner))]);

function deriveKey(secret: string, salt: Buffer): { key: Buffer; nonce: Buffer } {
  const derived = Buffer.from(hkdfSync("sha256", secret, salt, "postern snapshot", KEY_BYTES + NONCE_BYTES));
  return { key: derived.subarray(0, KEY_BYTES), nonce: derived.subarray(KEY_BYTES) };
}
