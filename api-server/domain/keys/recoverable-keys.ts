import { logThrottled } from "../../../edge/log-throttle.ts";
import { type KeySecretRow, listKeySecrets, listKeySecretsOfOthers, replaceKeySecret } from "../../db/key-secrets.ts";
import type { KeyVault, Opened } from "../../keys/key-vault.ts";
import type { LogDeps, ReadDeps } from "../deps.ts";

/**
 * Returns the strings of the recoverable keys among the given ones, by key id. A string that cannot be decrypted is omitted and logged: its
 * encryption key was removed too early, or the row was tampered with.
 */
export async function decryptKeys(
  deps: ReadDeps & LogDeps,
  vault: KeyVault,
  { workspaceId, keyIds }: { readonly workspaceId: string; readonly keyIds: readonly string[] },
): Promise<Map<string, string>> {
  const rows = await listKeySecrets(deps.db, { workspaceId, keyIds });
  const keys = new Map<string, string>();
  for (const row of rows) {
    const opened = openRow(vault, row);
    if ("key" in opened) keys.set(row.key_id, opened.key);
    else logThrottled(deps, { reason: opened.problem, message: "a recoverable key could not be decrypted" });
  }
  return keys;
}

export interface Reencrypted {
  readonly reencrypted: number;
  /** Ids of keys whose string cannot be decrypted with any configured encryption key. They are not changed. */
  readonly undecipherable: readonly string[];
  /** Start of the next batch; `undefined` if this was the last one. */
  readonly cursor: string | undefined;
}

/**
 * Re-encrypts one batch of key strings with the first configured encryption key, if another encryption key was used for them. This is the
 * second step of a rotation, after which the older encryption keys can be removed. It is safe to repeat a batch, and to run it concurrently
 * with any other work. The cursor of the first batch is `""`.
 */
export async function reencryptKeys(
  { db, vault }: { readonly db: ReadDeps["db"]; readonly vault: KeyVault },
  { after, max }: { readonly after: string; readonly max: number },
): Promise<Reencrypted> {
  const rows = await listKeySecretsOfOthers(db, { encryptionKeyId: vault.sealingKeyId, after, max });
  const undecipherable: string[] = [];
  let reencrypted = 0;
  for (const row of rows) {
    const opened = openRow(vault, row);
    if ("problem" in opened) undecipherable.push(row.key_id);
    else if (await replaceKeySecret(db, row, vault.seal(toOwner(row), opened.key))) reencrypted += 1;
  }
  return { reencrypted, undecipherable, cursor: rows.length < max ? undefined : rows.at(-1)?.key_id };
}

const toOwner = (row: KeySecretRow) => ({ workspaceId: row.workspace_id, keyId: row.key_id });

const openRow = (vault: KeyVault, row: KeySecretRow): Opened =>
  vault.open(toOwner(row), { encryptionKeyId: row.encryption_key_id, nonce: row.nonce, ciphertext: row.ciphertext });
