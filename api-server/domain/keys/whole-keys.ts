import type { Deps } from "../../deps.ts";
import type { KeyVault } from "../../key-vault.ts";
import { type KeyPartsRow, type KeyRow, listKeyParts } from "../../store/keys.ts";
import { decryptKeys } from "./recoverable-keys.ts";

/** A key with everything that is told of it. */
export interface WholeKey {
  readonly row: KeyRow;
  /** Slugs directly and through roles, and names of roles, are sorted. */
  readonly parts: Omit<KeyPartsRow, "key_id">;
  /** The credits that are left at this moment, by the shared counter; undefined when they are unlimited. */
  readonly remaining: number | undefined;
  /** The secret of a recoverable key, when a vault was given. */
  readonly plaintext: string | undefined;
}

/**
 * Returns keys with their parts, in the given order: one query for the parts of all. With a vault also their strings, if they are
 * recoverable.
 */
export async function readWholeKeys(
  deps: Deps,
  workspaceId: string,
  rows: readonly KeyRow[],
  vault?: KeyVault,
): Promise<WholeKey[]> {
  if (rows.length === 0) return [];
  const keyIds = rows.map(({ id }) => id);
  const limited = rows.filter(({ remaining }) => remaining !== null).map(({ id }) => id);
  const [parts, remaining, plaintexts] = await Promise.all([
    listKeyParts(deps.db, { workspaceId, keyIds }),
    limited.length === 0 ? new Map<string, number>() : deps.credits.readManyRemaining(workspaceId, limited),
    vault === undefined ? new Map<string, string>() : decryptKeys(deps, vault, { workspaceId, keyIds }),
  ]);
  const partsByKey = new Map(parts.map((one) => [one.key_id, one]));
  return rows.map((row) => ({
    row,
    parts: sorted(partsByKey.get(row.id) ?? NONE),
    // A key that was unlimited a moment later had these.
    remaining: row.remaining === null ? undefined : (remaining.get(row.id) ?? row.remaining),
    plaintext: plaintexts.get(row.id),
  }));
}

const NONE: WholeKey["parts"] = { permissions: [], roles: [], ratelimits: [], identity_ratelimits: [] };

const sorted = (parts: WholeKey["parts"]): WholeKey["parts"] => ({
  ...parts,
  permissions: parts.permissions.toSorted(),
  roles: parts.roles.toSorted(),
});
