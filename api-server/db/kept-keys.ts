import type { Queryable } from "../../postgres/queryable.ts";
import { KEY_COLUMNS, type KeyRef, type KeyRow } from "./keys.ts";

/** A key whose row still exists, even if the key, its API or its identity is marked as deleted. */
export interface KeptKeyRow extends KeyRow {
  readonly deleted_at: number | null;
  readonly api_name: string;
  readonly api_deleted_at: number | null;
  readonly ip_allow_list: string[];
  readonly workspace_enabled: boolean;
  /** Deletion time of the linked identity; `null` if the identity is live or the key has none. */
  readonly identity_deleted_at: number | null;
}

export async function findKeptKey(db: Queryable, { workspaceId, keyId }: KeyRef): Promise<KeptKeyRow | undefined> {
  const text = `select ${KEY_COLUMNS}, k.deleted_at, a.name as api_name, a.deleted_at as api_deleted_at, a.ip_allow_list,
                       w.enabled as workspace_enabled, gone.deleted_at as identity_deleted_at
                  from keys k
                  join apis a on a.id = k.api_id
                  join workspaces w on w.id = k.workspace_id
                  left join identities i on i.id = k.identity_id and i.deleted_at is null
                  left join identities gone on gone.id = k.identity_id and gone.deleted_at is not null
                  left join key_credits c on c.key_id = k.id
                 where k.workspace_id = $1 and k.id = $2`;
  const { rows } = await db.query<KeptKeyRow>({ name: "find-kept-key", text, values: [workspaceId, keyId] });
  return rows[0];
}
