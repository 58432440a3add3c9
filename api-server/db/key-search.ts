import type { Queryable } from "../../postgres/queryable.ts";
import { beginningWith, containing } from "./pages.ts";

/* Searches live keys. They are sorted newest first, or by expiry in a search for keys that expire soon. */

/** Position in the sorted keys: the last key of the previous page. */
export interface KeyPosition {
  /** Time by which the keys are sorted, Unix ms. It is the expiry if the filter has `expiresBefore`, otherwise the creation time. */
  readonly atMs: number;
  readonly keyId: string;
}

/** Filter of keys. A key must match all members; `undefined` members are ignored. */
export interface KeyFilter {
  readonly workspaceId: string;
  /** Ids of the APIs whose keys are searched; "all" for every API of the workspace. */
  readonly apiIds: "all" | readonly string[];
  readonly keyId?: string | undefined;
  readonly hash?: string | undefined;
  /** Substring of the key's name in a search of one API; prefix of the name in a search of several. Case-insensitive. */
  readonly name?: string | undefined;
  /** Prefix of the key's `start`. */
  readonly start?: string | undefined;
  /** Owner to search for: an identity and its external id. v1 may have stored an external id without an identity. */
  readonly owner?: { readonly identityId: string | undefined; readonly externalId: string } | undefined;
  readonly enabled?: boolean | undefined;
  readonly expired?: boolean | undefined;
  /** Selects enabled, unexpired keys that expire before this time (Unix ms), and sorts them by expiry, earliest first. */
  readonly expiresBefore?: number | undefined;
  readonly limited?: boolean | undefined;
  readonly managed?: boolean | undefined;
  readonly roleId?: string | undefined;
  /** Permission held directly or through a role. */
  readonly permissionId?: string | undefined;
  readonly nowMs: number;
}

/** A key as it appears in a list. Members that can be large are omitted. */
export interface FoundKeyRow {
  readonly id: string;
  readonly api_id: string;
  readonly start: string;
  readonly name: string | null;
  readonly enabled: boolean;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly created_at: number;
  readonly manager: string | null;
  /** External id of the key's live identity, or the owner that v1 stored. */
  readonly external_id: string | null;
  /** Stored remaining credits, which may still include credits spent in the last second; `null` if unlimited. */
  readonly remaining: number | null;
}

/**
 * If at most this many keys hold a permission, the search starts from the list of these keys. If more hold it, many keys match, so checking
 * all keys one at a time, newest first, fills a page quickly.
 */
const HOLDERS_MAX = 5_000;

/**
 * Returns the keys that hold a permission, directly or through a role; a key may occur twice. Returns `undefined` if there are more than
 * `HOLDERS_MAX`.
 */
async function findHolders(
  db: Queryable,
  { workspaceId, permissionId }: { workspaceId: string; permissionId: string },
): Promise<readonly string[] | undefined> {
  const text = `select kp.key_id as id
                  from key_permissions kp
                 where kp.workspace_id = $1 and kp.permission_id = $2
                 union all
                select kr.key_id
                  from role_permissions rp
                  join key_roles kr on kr.role_id = rp.role_id
                 where rp.workspace_id = $1 and rp.permission_id = $2
                 limit $3`;
  const { rows } = await db.query<{ id: string }>({ text, values: [workspaceId, permissionId, HOLDERS_MAX + 1] });
  return rows.length > HOLDERS_MAX ? undefined : rows.map(({ id }) => id);
}

/**
 * Returns at most `rowsMax` keys after a position, in the order of the filter. The statement is not prepared, so that Postgres plans it for the values of this search.
 */
export async function searchKeys(
  db: Queryable,
  filter: KeyFilter,
  { after, rowsMax }: { readonly after: KeyPosition | undefined; readonly rowsMax: number },
): Promise<FoundKeyRow[]> {
  const { workspaceId, permissionId } = filter;
  const holders = permissionId === undefined ? undefined : await findHolders(db, { workspaceId, permissionId });
  const { conditions, values } = conditionsOf(filter, { after, holders });
  values.push(rowsMax);
  const order = filter.expiresBefore === undefined ? "k.created_at desc, k.id desc" : "k.expires_at, k.id";
  const text = `with page as (
                  select k.id
                    from keys k
                    join apis a on a.id = k.api_id and a.deleted_at is null
                   where k.workspace_id = $1 and ${conditions.join("\n                     and ")}
                   order by ${order}
                   limit $${values.length}
                )
                select k.id, k.api_id, k.start, k.name, k.enabled, k.expires_at, k.last_used_at, k.created_at, k.manager,
                       coalesce(i.external_id, k.owner_id) as external_id, c.granted - c.spent as remaining
                  from page p
                  join keys k on k.id = p.id
                  left join identities i on i.id = k.identity_id and i.deleted_at is null
                  left join key_credits c on c.key_id = k.id
                 order by ${order}`;
  return (await db.query<FoundKeyRow>({ text, values })).rows;
}

function conditionsOf(
  filter: KeyFilter,
  { after, holders }: { readonly after: KeyPosition | undefined; readonly holders: readonly string[] | undefined },
): { readonly conditions: readonly string[]; readonly values: unknown[] } {
  const values: unknown[] = [filter.workspaceId];
  const conditions = ["k.deleted_at is null"];
  /** Adds a parameter value and returns its placeholder. */
  const at = (value: unknown): string => `$${values.push(value)}`;

  const { apiIds } = filter;
  const [onlyApi] = apiIds;
  const ofOneApi = apiIds !== "all" && apiIds.length === 1;
  if (ofOneApi) conditions.push(`k.api_id = ${at(onlyApi)}`);
  else if (apiIds !== "all") conditions.push(`k.api_id = any (${at(apiIds)}::text[])`);

  if (filter.keyId !== undefined) conditions.push(`k.id = ${at(filter.keyId)}`);
  if (filter.hash !== undefined) conditions.push(`k.hash = ${at(filter.hash)}`);
  if (filter.name !== undefined) {
    const pattern = ofOneApi ? containing(filter.name) : beginningWith(filter.name);
    conditions.push(`lower(k.name) like lower(${at(pattern)})`);
  }
  if (filter.start !== undefined) conditions.push(`k.start like ${at(beginningWith(filter.start))}`);
  if (filter.owner !== undefined) {
    const { identityId, externalId } = filter.owner;
    const isStored = `k.owner_id = ${at(externalId)}`;
    conditions.push(identityId === undefined ? isStored : `(k.identity_id = ${at(identityId)} or ${isStored})`);
  }
  if (filter.enabled !== undefined) conditions.push(filter.enabled ? "k.enabled" : "not k.enabled");
  if (filter.expired !== undefined) {
    // A key is still valid in the millisecond of its expiry, so a key that expires in this millisecond does not count as expired.
    const isExpired = `k.expires_at < ${at(filter.nowMs)}`;
    conditions.push(filter.expired ? isExpired : `(k.expires_at is null or not ${isExpired})`);
  }
  if (filter.expiresBefore !== undefined) {
    conditions.push(`k.enabled and k.expires_at >= ${at(filter.nowMs)} and k.expires_at < ${at(filter.expiresBefore)}`);
  }
  if (filter.managed !== undefined) conditions.push(`k.manager is ${filter.managed ? "not null" : "null"}`);
  if (filter.limited !== undefined) {
    conditions.push(`${filter.limited ? "" : "not "}exists (select from key_credits c where c.key_id = k.id)`);
  }
  if (filter.roleId !== undefined) {
    conditions.push(`k.id in (select kr.key_id from key_roles kr where kr.role_id = ${at(filter.roleId)})`);
  }
  if (holders !== undefined) conditions.push(`k.id = any (${at(holders)}::text[])`);
  else if (filter.permissionId !== undefined) {
    const permission = at(filter.permissionId);
    conditions.push(`(exists (select from key_permissions kp where kp.key_id = k.id and kp.permission_id = ${permission})
                      or exists (select
                                   from key_roles kr
                                   join role_permissions rp on rp.role_id = kr.role_id
                                  where kr.key_id = k.id and rp.permission_id = ${permission}))`);
  }
  if (after !== undefined) {
    const sorted = filter.expiresBefore === undefined ? "(k.created_at, k.id) <" : "(k.expires_at, k.id) >";
    conditions.push(`${sorted} (${at(after.atMs)}::bigint, ${at(after.keyId)}::text)`);
  }
  return { conditions, values };
}
