import type { Queryable } from "../../postgres/queryable.ts";
import { findSetting } from "./settings.ts";

/** A use of a root key, on a UTC date (`YYYY-MM-DD`). */
export interface RootKeyUse {
  readonly rootKeyId: string;
  /** Permission tuple that a call required and the root key held. The empty string records only that the root key made a call. */
  readonly tuple: string;
  readonly usedOn: string;
  /** If a tuple with `*` was used for exactly one object on that day, the object's id; otherwise `null`. */
  readonly onlyId: string | null;
}

/**
 * Records uses of root keys, at most one per root key and tuple; ignores root keys that do not exist. A row that is already up to date is
 * not written. Rows are written in a fixed order, so that two api-servers do not deadlock.
 */
export async function upsertRootKeyUsage(db: Queryable, uses: readonly RootKeyUse[]): Promise<void> {
  const text = `insert into root_key_usage as u (root_key_id, tuple, workspace_id, last_used_on, only_id)
                select n.root_key_id, n.tuple, r.workspace_id, n.used_on, n.only_id
                  from unnest($1::text[], $2::text[], $3::date[], $4::text[]) as n (root_key_id, tuple, used_on, only_id)
                  join root_keys r on r.id = n.root_key_id
                 order by n.root_key_id, n.tuple
                on conflict (root_key_id, tuple) do update
                   set last_used_on = greatest(u.last_used_on, excluded.last_used_on),
                       only_id = case when u.only_id = excluded.only_id then u.only_id end
                 where u.last_used_on < excluded.last_used_on
                    or (u.only_id is not null and u.only_id is distinct from excluded.only_id)`;
  const values = [
    uses.map(({ rootKeyId }) => rootKeyId),
    uses.map(({ tuple }) => tuple),
    uses.map(({ usedOn }) => usedOn),
    uses.map(({ onlyId }) => onlyId),
  ];
  await db.query({ name: "upsert-root-key-usage", text, values });
}

export interface RootKeyUseRow {
  readonly root_key_id: string;
  readonly tuple: string;
  readonly last_used_on: string;
  readonly only_id: string | null;
}

/** Returns the uses of the given root keys, sorted by tuple. */
export async function listRootKeyUsage(
  db: Queryable,
  { workspaceId, rootKeyIds }: { workspaceId: string; rootKeyIds: readonly string[] },
): Promise<RootKeyUseRow[]> {
  const text = `select u.root_key_id, u.tuple, u.last_used_on::text as last_used_on, u.only_id
                  from root_key_usage u
                 where u.root_key_id = any($2) and u.workspace_id = $1
                 order by u.tuple`;
  const values = [workspaceId, rootKeyIds];
  const { rows } = await db.query<RootKeyUseRow>({ name: "list-root-key-usage", text, values });
  return rows;
}

/** Returns the time at which the recording of root key uses began, Unix ms. */
export const findUsageSince = async (db: Queryable): Promise<number> =>
  (await findSetting<number>(db, "root-key-usage-since")) ?? Number.POSITIVE_INFINITY;
