import type { Queryable } from "../../postgres/queryable.ts";
import type { KeyRef } from "./keys.ts";

/* Encrypted strings of recoverable keys. Deleting a key's row also deletes its encrypted string. */

/** Encrypted form of a key's string (see key-vault.ts). */
export interface Sealed {
  readonly encryptionKeyId: string;
  readonly nonce: Uint8Array;
  readonly ciphertext: Uint8Array;
}

export interface KeySecretRow {
  readonly key_id: string;
  readonly workspace_id: string;
  readonly encryption_key_id: string;
  readonly nonce: Uint8Array;
  readonly ciphertext: Uint8Array;
}

export async function insertKeySecret(
  tx: Queryable,
  { workspaceId, keyId, sealed, createdAt }: KeyRef & { readonly sealed: Sealed; readonly createdAt: number },
): Promise<void> {
  const text = `insert into key_secrets (key_id, workspace_id, encryption_key_id, nonce, ciphertext, created_at)
                values ($1, $2, $3, $4, $5, $6)`;
  const { encryptionKeyId, nonce, ciphertext } = sealed;
  await tx.query({
    name: "insert-key-secret",
    text,
    values: [keyId, workspaceId, encryptionKeyId, nonce, ciphertext, createdAt],
  });
}

export async function hasKeySecret(db: Queryable, { workspaceId, keyId }: KeyRef): Promise<boolean> {
  const text = "select from key_secrets where workspace_id = $1 and key_id = $2";
  const { rowCount } = await db.query({ name: "has-key-secret", text, values: [workspaceId, keyId] });
  return rowCount === 1;
}

/** Returns the encrypted strings of the given keys, in no order. Keys that are not recoverable have none. */
export async function listKeySecrets(
  db: Queryable,
  { workspaceId, keyIds }: { workspaceId: string; keyIds: readonly string[] },
): Promise<KeySecretRow[]> {
  const text = `select key_id, workspace_id, encryption_key_id, nonce, ciphertext
                  from key_secrets
                 where workspace_id = $1 and key_id = any ($2::text[])`;
  const { rows } = await db.query<KeySecretRow>({ name: "list-key-secrets", text, values: [workspaceId, keyIds] });
  return rows;
}

/**
 * Returns the secrets that were not encrypted with the given encryption key, from all workspaces, sorted by key id, starting after `after`.
 */
export async function listKeySecretsOfOthers(
  db: Queryable,
  { encryptionKeyId, after, max }: { encryptionKeyId: string; after: string; max: number },
): Promise<KeySecretRow[]> {
  const text = `select key_id, workspace_id, encryption_key_id, nonce, ciphertext
                  from key_secrets
                 where encryption_key_id <> $1 and key_id > $2
                 order by key_id
                 limit $3`;
  const { rows } = await db.query<KeySecretRow>({
    name: "list-key-secrets-of-others",
    text,
    values: [encryptionKeyId, after, max],
  });
  return rows;
}

/**
 * Replaces an encrypted string. Returns false, and writes nothing, if the string was replaced or the key deleted since the row was read.
 */
export async function replaceKeySecret(db: Queryable, old: KeySecretRow, sealed: Sealed): Promise<boolean> {
  const text = `update key_secrets
                   set encryption_key_id = $4, nonce = $5, ciphertext = $6
                 where workspace_id = $1 and key_id = $2 and nonce = $3`;
  const { rowCount } = await db.query({
    name: "replace-key-secret",
    text,
    values: [old.workspace_id, old.key_id, old.nonce, sealed.encryptionKeyId, sealed.nonce, sealed.ciphertext],
  });
  return rowCount === 1;
}

/**
 * Returns the number of strings that each encryption key has encrypted, over all workspaces, including those of queued keys
 * (queued-keys.ts). An encryption key without strings can safely be removed from the configuration.
 */
export async function countKeySecrets(
  db: Queryable,
): Promise<{ readonly encryption_key_id: string; readonly count: number }[]> {
  const text = `select s.encryption_key_id, count(*) as count
                  from (select encryption_key_id from key_secrets
                         union all
                        select encryption_key_id from queued_keys where ciphertext is not null) as s
                 group by s.encryption_key_id
                 order by s.encryption_key_id`;
  const { rows } = await db.query<{ encryption_key_id: string; count: number }>({ name: "count-key-secrets", text });
  return rows;
}
