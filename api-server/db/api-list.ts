import type { Queryable } from "../../postgres/queryable.ts";
import type { ApiSettingsRow } from "./apis.ts";
import { containing } from "./pages.ts";

export interface ListedApiRow extends ApiSettingsRow {
  /** Number of live keys, counted up to `countedMax`. */
  readonly keys: number;
}

export interface ApiListQuery {
  readonly workspaceId: string;
  readonly apiIds: "all" | readonly string[];
  /** Lower bound (inclusive) for the ids of the page. */
  readonly cursor: string;
  /** Substring of the name or id, ignoring case; the empty string matches all. */
  readonly search: string;
  readonly rowsMax: number;
  readonly countedMax: number;
}

/** Returns live APIs sorted by id. */
export async function listApisWithCounts(
  db: Queryable,
  { workspaceId, apiIds, cursor, search, rowsMax, countedMax }: ApiListQuery,
): Promise<ListedApiRow[]> {
  const text = `with page as (
                  select a.id, a.name, a.delete_protection, a.key_encryption, a.default_prefix, a.default_byte_length,
                         a.ip_allow_list, a.manager, a.created_at
                    from apis a
                   where a.workspace_id = $1 and a.deleted_at is null and a.id >= $2
                     and ($3::text[] is null or a.id = any ($3::text[]))
                     and ($4 = '%%' or a.name ilike $4 or a.id ilike $4)
                   order by a.id
                   limit $5
                )
                select p.*, (select count(*)
                               from (select from keys k where k.api_id = p.id and k.deleted_at is null limit $6) counted) as keys
                  from page p
                 order by p.id`;
  const ids = apiIds === "all" ? null : apiIds;
  const values = [workspaceId, cursor, ids, containing(search), rowsMax, countedMax];
  return (await db.query<ListedApiRow>({ text, values })).rows;
}
