import { type KeyPartsRow, type KeyRow, listKeyParts } from "../../db/keys.ts";
import type { KeyVault } from "../../keys/key-vault.ts";
import type { CreditsDeps, LogDeps, ReadDeps } from "../deps.ts";
import { decryptKeys } from "./recoverable-keys.ts";

/** A key with all data that its API response contains. */
export interface FullKey {
  readonly row: KeyRow;
  /** Permissions that the key holds directly and through roles, sorted by slug, and roles, sorted by name. */
  readonly parts: Omit<KeyPartsRow, "key_id">;
  /** Current remaining credits from the Redis counter; `undefined` if unlimited. */
  readonly remaining: number | undefined;
  /** The secret of a recoverable key, if a vault was given. */
  readonly plaintext: string | undefined;
}

/**
 * Returns keys with all data of a response, in the given order. Reads permissions, roles and limits with one query. If a vault is given,
 * the result includes the strings of recoverable keys.
 */
export async function readFullKeys(
  deps: ReadDeps & LogDeps & Pick<CreditsDeps, "credits">,
  workspaceId: string,
  rows: readonly KeyRow[],
  vault?: KeyVault,
): Promise<FullKey[]> {
  if (rows.length === 0) return [];
  const keyIds = rows.map(({ id }) => id);
  const limited = rows.filter(({ remaining }) => remaining !== null).map(({ id }) => id);
  const [parts, remaining, plaintexts] = await Promise.all([
    listKeyParts(deps.db, { workspaceId, keyIds }),
    limited.length === 0 ? new Map<string, number>() : deps.credits.readManyRemaining(deps.db, workspaceId, limited),
    vault === undefined ? new Map<string, string>() : decryptKeys(deps, vault, { workspaceId, keyIds }),
  ]);
  const partsByKey = new Map(parts.map((one) => [one.key_id, one]));
  return rows.map((row) => ({
    row,
    parts: sorted(partsByKey.get(row.id) ?? NONE),
    // The row determines whether the key is unlimited, because it was read first: since then, the key may have received credits.
    remaining: row.remaining === null ? undefined : (remaining.get(row.id) ?? row.remaining),
    plaintext: plaintexts.get(row.id),
  }));
}

const NONE: FullKey["parts"] = { permissions: [], roles: [], ratelimits: [], identity_ratelimits: [] };

const sorted = (deps: FullKey["parts"]): FullKey["parts"] => ({
  ...deps,
  permissions: deps.permissions.toSorted(),
  roles: deps.roles.toSorted(),
});
