import type { Pool } from "pg";
import type { Projection } from "../edge/projection/contract.ts";
import { createKnownHashes, type KnownHashes } from "./known-hashes.ts";
import { findKeyHome } from "./store/keys.ts";

/*
 * Which workspace a key belongs to, by its hash alone: for callers without a root key. The key itself is then read through the
 * projection, as everywhere else.
 */

/** As many as there are keys in the cache of the projection. */
const ENTRIES_MAX = 20_000;

export interface KeyHome {
  readonly workspaceId: string;
  /** Requests per minute of the workspace; undefined means unlimited. */
  readonly quotaPerMinute: number | undefined;
}

export type KeyHomes = KnownHashes<KeyHome>;

export const createKeyHomes = ({ db, projection }: { db: Pool; projection: Projection }): KeyHomes =>
  createKnownHashes({
    projection,
    kind: "key",
    entriesMax: ENTRIES_MAX,
    workspaceOf: ({ workspaceId }: KeyHome) => workspaceId,
    read: async (hash) => {
      const row = await findKeyHome(db, { hash });
      return row && { workspaceId: row.workspace_id, quotaPerMinute: row.quota_per_minute ?? undefined };
    },
  });
