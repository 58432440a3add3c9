import type { Pool } from "pg";
import type { Projection } from "../../edge/projection/contract.ts";
import { findKeyHome } from "../db/keys.ts";
import { createHashCache, type HashCache } from "./hash-cache.ts";

/*
 * Finds the workspace of a key, given only the key's hash, for callers without a root key. The key's record is then read from the
 * projection cache.
 */

/** Maximum number of cached owners; equal to the maximum number of keys in the projection cache. */
const ENTRIES_MAX = 20_000;

export interface KeyHome {
  readonly workspaceId: string;
  /** Maximum requests per minute of the workspace; `undefined` if unlimited. */
  readonly quotaPerMinute: number | undefined;
}

export type KeyOwners = HashCache<KeyHome>;

export const createKeyOwners = ({ db, projection }: { db: Pool; projection: Projection }): KeyOwners =>
  createHashCache({
    projection,
    kind: "key",
    entriesMax: ENTRIES_MAX,
    workspaceOf: ({ workspaceId }: KeyHome) => workspaceId,
    read: async (hash) => {
      const row = await findKeyHome(db, { hash });
      return row && { workspaceId: row.workspace_id, quotaPerMinute: row.quota_per_minute ?? undefined };
    },
  });
