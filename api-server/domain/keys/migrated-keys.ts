import { readPrefixedKey } from "../../../core/keys/migration.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import { findMigratedKey, rewriteMigratedKey } from "../../db/migrated-keys.ts";
import { inTransaction, type Transacting } from "../../db/transaction.ts";

/**
 * Handles the first use of a key that a migration imported: from then on, api-servers and pods find the key by its own hash. Of several
 * concurrent first uses, one rewrites the key, and all of them find it.
 * @param presented.hash hash of the complete key.
 * @returns whether a key can be found by that hash now.
 */
export async function takeOverMigratedKey(
  deps: Transacting,
  presented: {
    readonly workspaceId: string;
    readonly migrationId: string;
    readonly key: string;
    readonly hash: string;
    /** Returns whether the caller is allowed to verify keys of the API. Called before any write. */
    readonly mayVerify: (apiId: string) => boolean;
  },
): Promise<boolean> {
  const { workspaceId, migrationId, key, hash, mayVerify } = presented;
  const prefixed = readPrefixedKey(key);
  if (prefixed === undefined) return false;
  const found = await findMigratedKey(deps.db, { workspaceId, migrationId, hash, pendingHash: prefixed.hash });
  if (found === undefined || !mayVerify(found.api_id)) return false;
  if (!found.is_rewritten) {
    const rewrite = { workspaceId, keyId: found.id, migrationId, hash, start: prefixed.start };
    try {
      await inTransaction(deps, (tx) => rewriteMigratedKey(tx, rewrite));
    } catch (error) {
      // Another key already has this hash. It is deleted or belongs to another workspace, so this call cannot see it.
      if (isUniqueViolation(error, "keys_hash_key")) return false;
      throw error;
    }
  }
  // If another transaction rewrote the key, this one has no outbox entries, so the negative cache entry of this process must be dropped
  // explicitly.
  deps.projection.drop([{ workspaceId, kind: "key", id: hash }]);
  return true;
}
