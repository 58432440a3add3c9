import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";

/*
 * Encrypts and decrypts the strings of recoverable keys (docs/decisions/0008-encrypted-key-strings.md):
 *
 *   configured encryption key ─ HKDF-SHA256 with the workspace's id ─► data key ─ AES-256-GCM, a random nonce ─► sealed
 *
 * The ids of the encryption key, the workspace and the key are authenticated data, so a row that is copied to another key or workspace
 * cannot be decrypted.
 */

export const ENCRYPTION_KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
/** Format version. It is part of the key derivation, so that data in one format can never be decrypted as data in another format. */
const FORMAT = "postern key secret 1";

/** A configured encryption key: its id in stored rows, and 32 random bytes. */
export interface EncryptionKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

export interface SealedString {
  readonly encryptionKeyId: string;
  readonly nonce: Uint8Array;
  /** Ciphertext, followed by the authentication tag. */
  readonly ciphertext: Uint8Array;
}

/** The API key to which an encrypted string belongs. */
export interface KeyOwner {
  readonly workspaceId: string;
  readonly keyId: string;
}

/** Result of decryption. `problem` contains no secrets, so it is safe to log. */
export type Opened = { readonly key: string } | { readonly problem: string };

export interface KeyVault {
  /** Id of the encryption key that is used to encrypt. */
  readonly sealingKeyId: string;
  seal(owner: KeyOwner, key: string): SealedString;
  open(owner: KeyOwner, sealed: SealedString): Opened;
}

/**
 * Creates a vault. The first encryption key encrypts, and all of them decrypt. To replace an encryption key, put its successor before it.
 */
export function createKeyVault(
  [sealing, ...older]: readonly [EncryptionKey, ...EncryptionKey[]],
  { randomBytes }: { randomBytes: (size: number) => Uint8Array },
): KeyVault {
  const secrets = new Map([sealing, ...older].map(({ id, secret }) => [id, secret]));
  return {
    sealingKeyId: sealing.id,

    seal(owner, key) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, dataKey(sealing.secret, owner), nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(associatedData(sealing.id, owner));
      const ciphertext = Buffer.concat([cipher.update(key, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return { encryptionKeyId: sealing.id, nonce, ciphertext };
    },

    open(owner, { encryptionKeyId, nonce, ciphertext }) {
      const secret = secrets.get(encryptionKeyId);
      if (secret === undefined) return { problem: `the encryption key ${encryptionKeyId} is not configured` };
      try {
        const decipher = createDecipheriv(CIPHER, dataKey(secret, owner), nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(associatedData(encryptionKeyId, owner));
        decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
        const text = Buffer.concat([decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]);
        return { key: text.toString("utf8") };
      } catch {
        // OpenSSL reports the same error whether the row was changed or the id belongs to another encryption key.
        return { problem: `the string that encryption key ${encryptionKeyId} encrypted cannot be authenticated` };
      }
    },
  };
}

/**
 * Derives a data key per workspace, because AES-GCM limits how much one key can safely encrypt: one workspace must not use up that limit
 * for the others.
 */
const dataKey = (secret: Uint8Array, { workspaceId }: KeyOwner): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, "", `${FORMAT} ${workspaceId}`, ENCRYPTION_KEY_BYTES));

/** Encodes the list as JSON, which is unambiguous: different lists never have the same JSON. */
const associatedData = (encryptionKeyId: string, { workspaceId, keyId }: KeyOwner): Uint8Array =>
  Buffer.from(JSON.stringify([FORMAT, encryptionKeyId, workspaceId, keyId]));
