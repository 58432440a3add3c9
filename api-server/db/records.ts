import { JsonText, type RecordSource, type RecordWrite } from "../../edge/projection/contract.ts";
import { REFERRED_KINDS, type RecordKind, type RecordRef } from "../../edge/records.ts";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/*
 * Reads the current records of core/records.ts from Postgres. The relay writes them to Redis, and the api-server uses them for its own
 * verifications. One statement per kind reads any number of records. Only the records of the api-server contain the members that its
 * responses need: `meta`, and the owner and environment of v1.
 */

/** A result row of the statements in this file: the ref of a record, and the record as JSON. */
interface RecordRow {
  readonly workspace_id: string;
  readonly id: string;
  readonly data: unknown;
}

/**
 * Limits of a key or identity. `json_strip_nulls` omits absent optional members. It would also remove nulls within `meta`, so `meta` is
 * added separately.
 */
const RATELIMITS = `select json_agg(json_build_object('id', l.id, 'name', l.name, 'limit', l.max_count,
                                                      'durationMs', l.duration_ms, 'autoApply', l.auto_apply))
                      from ratelimits l`;

/** SQL expressions for the requested records: an array of workspaces and an array of ids. */
export interface Asked {
  readonly workspaces: string;
  readonly ids: string;
}

type Statements = Readonly<Record<Exclude<RecordKind, "rootKey">, string>>;

/** Ids under which live policies are projected: the current id, and the former id, which running sidecars may still use. */
const POLICY_IDS = `(select p.workspace_id, p.id, p.id as policy_id from policies p where p.deleted_at is null
                     union all
                     select p.workspace_id, p.former_id, p.id from policies p where p.deleted_at is null and p.former_id is not null)`;

/** Members of a key record that only v1 returns. */
const OWNER = ", 'ownerId', k.owner_id, 'environment', k.environment";

const metaOf = (table: string): string =>
  `|| case when ${table}.meta is null then '{}'::jsonb else jsonb_build_object('meta', ${table}.meta) end`;

/** Returns the statements that read the records of each kind. */
export const writeStatements = ({ workspaces, ids }: Asked, { isComplete }: { isComplete: boolean }): Statements => ({
  key: `select k.workspace_id, k.hash as id,
               jsonb_strip_nulls(jsonb_build_object(
                 'keyId', k.id, 'workspaceId', k.workspace_id, 'apiId', k.api_id, 'keySpaceId', a.key_space_id,
                 'enabled', k.enabled, 'name', k.name, 'expiresMs', k.expires_at, 'identityId', k.identity_id,
                 'roleIds', coalesce((select json_agg(kr.role_id) from key_roles kr where kr.key_id = k.id), '[]'),
                 'permissions', coalesce((select json_agg(p.slug)
                                            from key_permissions kp
                                            join permissions p on p.id = kp.permission_id
                                           where kp.key_id = k.id), '[]'),
                 'ratelimits', coalesce((${RATELIMITS} where l.key_id = k.id), '[]'),
                 'limited', exists (select from key_credits c where c.key_id = k.id)${isComplete ? OWNER : ""}))
               ${isComplete ? metaOf("k") : ""} as data
          from keys k
          join apis a on a.id = k.api_id
         where k.workspace_id = any(${workspaces}) and k.hash = any(${ids}) and k.deleted_at is null`,
  identity: `select i.workspace_id, i.id,
                    jsonb_build_object('id', i.id, 'externalId', i.external_id,
                                       'ratelimits', coalesce((${RATELIMITS} where l.identity_id = i.id), '[]'))
                    ${isComplete ? metaOf("i") : ""} as data
               from identities i
              where i.workspace_id = any(${workspaces}) and i.id = any(${ids}) and i.deleted_at is null`,
  role: `select r.workspace_id, r.id,
                json_build_object('id', r.id, 'name', r.name,
                                  'permissions', coalesce((select json_agg(p.slug)
                                                             from role_permissions rp
                                                             join permissions p on p.id = rp.permission_id
                                                            where rp.role_id = r.id), '[]')) as data
           from roles r
          where r.workspace_id = any(${workspaces}) and r.id = any(${ids})`,
  api: `select a.workspace_id, a.id,
               jsonb_strip_nulls(jsonb_build_object(
                 'id', a.id, 'name', a.name,
                 'ipAllowList', case when cardinality(a.ip_allow_list) > 0 then to_jsonb(a.ip_allow_list) end)) as data
          from apis a
         where a.workspace_id = any(${workspaces}) and a.id = any(${ids}) and a.deleted_at is null`,
  workspace: `select w.id as workspace_id, w.id, json_build_object('id', w.id, 'enabled', w.enabled) as data
                from workspaces w
               where w.id = any(${workspaces}) and w.id = any(${ids}) and w.deleted_at is null`,
  namespace: `select n.workspace_id, n.id,
                     json_build_object('id', n.id, 'name', n.name, 'deleted', n.deleted_at is not null) as data
                from ratelimit_namespaces n
               where n.workspace_id = any(${workspaces}) and n.id = any(${ids})`,
  // A live namespace takes precedence over deleted namespaces with the same name. Without a live one, the latest deleted namespace is used.
  namespaceName: `select distinct on (n.workspace_id, n.name) n.workspace_id, n.name as id,
                         json_build_object('id', n.id, 'name', n.name, 'deleted', n.deleted_at is not null) as data
                    from ratelimit_namespaces n
                   where n.workspace_id = any(${workspaces}) and n.name = any(${ids})
                   order by n.workspace_id, n.name, n.deleted_at desc nulls first, n.id`,
  override: `select o.workspace_id, o.namespace_id || '/' || o.identifier as id,
                    json_build_object('id', o.id, 'identifier', o.identifier, 'limit', o.max_count,
                                      'durationMs', o.duration_ms, 'async', o.async) as data
               from unnest(${ids}) as wanted (id)
               join ratelimit_overrides o
                 on o.namespace_id = split_part(wanted.id, '/', 1)
                and o.identifier = substr(wanted.id, position('/' in wanted.id) + 1)
              where o.workspace_id = any(${workspaces}) and o.deleted_at is null`,
  overridePatterns: `select o.workspace_id, o.namespace_id as id,
                            json_build_object('patterns', json_agg(
                              json_build_object('id', o.id, 'identifier', o.identifier, 'limit', o.max_count,
                                                'durationMs', o.duration_ms, 'async', o.async) order by o.id)) as data
                       from ratelimit_overrides o
                      where o.workspace_id = any(${workspaces}) and o.namespace_id = any(${ids}) and o.deleted_at is null
                        and position('*' in o.identifier) > 0
                      group by o.workspace_id, o.namespace_id`,
  // A record under a former id also contains the current id.
  policy: `select p.workspace_id, named.id,
                  json_build_object('policyId', p.id, 'name', p.name, 'apiId', p.api_id, 'uid', p.uid,
                                    'generation', p.generation, 'version', p.version, 'policy', p.policy) as data
             from ${POLICY_IDS} named
             join policies p on p.id = named.policy_id
            where named.workspace_id = any(${workspaces}) and named.id = any(${ids})`,
});

const MANY: Asked = { workspaces: "$1::text[]", ids: "$2::text[]" };
/**
 * Expressions for a single record. They are separate from the array form, because Postgres does not know the length of an array parameter
 * and would plan the statement on each execution, which takes longer than running it.
 */
const ONE: Asked = { workspaces: "array[$1]", ids: "array[$2]" };

interface Reading {
  /** Prefix of the names of the prepared statements. */
  readonly name: string;
  readonly one: Statements;
  readonly many: Statements;
}

const reading = (name: string, options: { isComplete: boolean }): Reading => ({
  name,
  one: writeStatements(ONE, options),
  many: writeStatements(MANY, options),
});

/**
 * Reads records for pods, without the members that decisions do not use. `meta` is omitted because it can have up to 1 MiB and pods must
 * not see it.
 */
const PROJECTED = reading("read-projected", { isComplete: false });
/** Reads complete records for the api-server, because its responses contain all members. */
const WHOLE = reading("read-whole", { isComplete: true });

/** Returns the query that reads the given refs, which must all be of the given kind. */
function queryOf({ name, one, many }: Reading, kind: keyof Statements, refs: readonly RecordRef[]) {
  const workspaceIds = [...new Set(refs.map((ref) => ref.workspaceId))];
  const ids = [...new Set(refs.map((ref) => ref.id))];
  return workspaceIds.length === 1 && ids.length === 1
    ? { name: `${name}-${kind}`, text: one[kind], values: [workspaceIds[0], ids[0]] }
    : { name: `${name}-${kind}-many`, text: many[kind], values: [workspaceIds, ids] };
}

/**
 * Returns a statement that selects the same records, but as text. Once the preceding records have $3 bytes or more in total, every further
 * record is returned as `null`.
 */
const sized = (statement: string): string =>
  `select workspace_id, id, case when bytes_before < $3 then data end as data
     from (select workspace_id, id, data,
                  coalesce(sum(octet_length(data)) over (rows between unbounded preceding and 1 preceding), 0) as bytes_before
             from (select workspace_id, id, data::text as data from (${statement}) as records offset 0) as texts) as sized`;

/**
 * Returns the records for the given refs, in the order of the refs. The result is `undefined` for a record that is not in Postgres and
 * therefore does not exist, and for a root key, because root keys have no records. The refs may belong to several workspaces.
 */
async function readFull(db: Queryable, refs: readonly RecordRef[]): Promise<unknown[]> {
  const found = new Map<string, unknown>();
  for (const [kind, ofKind] of Map.groupBy(refs, (ref) => ref.kind)) {
    if (kind === "rootKey") continue;
    const { rows } = await db.query<RecordRow>(queryOf(WHOLE, kind, ofKind));
    for (const row of rows) found.set(place(kind, row.workspace_id, row.id), row.data);
  }
  return refs.map((ref) => found.get(place(ref.kind, ref.workspaceId, ref.id)));
}

/** Some of the requested records, and the refs that were not read, in the order of the refs. */
export interface SomeRecords {
  readonly writes: readonly RecordWrite[];
  readonly unread: readonly RecordRef[];
}

/**
 * Reads records in their projected form, and stops once their JSON has `bytesMax` bytes or more. At least one record is read, however large
 * it is. Reads the kinds one after the other, in the order of `refs`.
 */
export async function readSomeRecords(
  db: Queryable,
  refs: readonly RecordRef[],
  { bytesMax }: { bytesMax: number },
): Promise<SomeRecords> {
  const writes: RecordWrite[] = [];
  const unread: RecordRef[] = [];
  let remainingBytes = bytesMax;
  for (const [kind, ofKind] of Map.groupBy(refs, (ref) => ref.kind)) {
    if (remainingBytes <= 0) {
      unread.push(...ofKind);
    } else if (kind === "rootKey") {
      writes.push(...ofKind.map((ref) => ({ ref, data: undefined })));
    } else {
      const { name, text, values } = queryOf(PROJECTED, kind, ofKind);
      const query = { name, text: sized(text), values: [...values, remainingBytes] };
      const { rows } = await db.query<RecordRow & { data: string | null }>(query);
      const found = new Map(rows.map((row) => [place(kind, row.workspace_id, row.id), row.data]));
      for (const ref of ofKind) {
        const data = found.get(place(kind, ref.workspaceId, ref.id));
        if (data === null) unread.push(ref);
        else writes.push({ ref, data: data === undefined ? undefined : new JsonText(data) });
      }
      await noteRemoved(db, kind, writes);
      for (const { data } of rows) remainingBytes = data === null ? 0 : remainingBytes - Buffer.byteLength(data);
    }
  }
  return { writes, unread };
}

/** Tables whose rows are first marked as deleted, and removed once no other row refers to them. */
const DELETED_IN_STEPS = { api: "apis", identity: "identities", workspace: "workspaces" } as const;

/** Sets `isRemoved` in tombstones of the kind if their row no longer exists, because no other row can then refer to it. */
async function noteRemoved(db: Queryable, kind: RecordKind, writes: RecordWrite[]): Promise<void> {
  if (!REFERRED_KINDS.has(kind)) return;
  const isDeleted = ({ ref, data }: RecordWrite) => ref.kind === kind && data === undefined;
  const deletedIds = writes.filter(isDeleted).map(({ ref }) => ref.id);
  if (deletedIds.length === 0) return;
  const left = new Set<string>();
  if (isDeletedInSteps(kind)) {
    const text = `select t.id from ${DELETED_IN_STEPS[kind]} t where t.id = any($1::text[])`;
    const { rows } = await db.query<{ id: string }>({ name: `list-left-${kind}`, text, values: [deletedIds] });
    for (const { id } of rows) left.add(id);
  }
  for (const [i, write] of writes.entries()) {
    if (isDeleted(write) && !left.has(write.ref.id)) writes[i] = { ...write, isRemoved: true };
  }
}

const isDeletedInSteps = (kind: RecordKind): kind is keyof typeof DELETED_IN_STEPS => kind in DELETED_IN_STEPS;

const place = (kind: RecordKind, workspaceId: string, id: string): string => `${kind} ${workspaceId} ${id}`;

/**
 * Creates a record source on Postgres, where a missing record is certainly deleted. While Postgres is unreachable, every record that is
 * read is reported as "not usable".
 */
export function createPostgresSource(db: Queryable): RecordSource {
  return {
    async read(refs) {
      try {
        const records = await readFull(db, refs);
        return {
          usable: true,
          records: records.map((data) => (data === undefined ? GONE : { state: "found", version: 0, data })),
        };
      } catch (error) {
        if (isDatabaseUnavailable(error)) return { usable: false, reason: "Postgres cannot be reached" };
        throw error;
      }
    },
  };
}

const GONE = { state: "gone" } as const;

/** A page of refs, and the cursor of the next page; `undefined` on the last page. */
export interface RefPage {
  readonly refs: RecordRef[];
  readonly cursor: string | undefined;
}

/**
 * Restricts the list of records of a kind. Default: all records. Keys are restricted by API, because an index finds the keys of an API, but
 * none finds those of a workspace.
 */
export type Within = { readonly workspaceId: string } | { readonly apiId: string };

interface Range {
  readonly kind: ListedKind;
  readonly after: string;
  readonly within?: Within | undefined;
}

/** Lists every record of a kind, page by page, for a full projection. The cursor of the first page is `""`. */
export async function listRecordRefs(
  db: Queryable,
  { kind, after, within, max }: Range & { max: number },
): Promise<RefPage> {
  const { workspace, id, cursor, from, where } = LISTS[kind];
  const narrowed = narrow(kind, within, 3);
  const { rows } = await db.query<{ workspace_id: string; ref_id: string; next_after: string }>({
    name: `list-record-refs-${kind}`,
    text: `select ${workspace} as workspace_id, ${id} as ref_id, ${cursor} as next_after
             from ${from}
            where ${cursor} > $1 and ${where} ${narrowed.sql}
            order by ${cursor}
            limit $2`,
    values: [after, max, ...narrowed.values],
  });
  const refs = rows.map((row) => ({ workspaceId: row.workspace_id, kind, id: row.ref_id }));
  return { refs, cursor: rows.length < max ? undefined : rows.at(-1)?.next_after };
}

/**
 * Counts the records of a kind after one cursor, up to and including another cursor (`undefined`: to the end). The count uses neither
 * paging nor sorting, so it can reveal that the paged listing omitted a record.
 */
export async function countRecordRefs(
  db: Queryable,
  { kind, after, within, upTo }: Range & { upTo: string | undefined },
): Promise<number> {
  const { cursor, from, where } = LISTS[kind];
  const narrowed = narrow(kind, within, 3);
  const { rows } = await db.query<{ count: number }>({
    name: `count-record-refs-${kind}`,
    text: `select count(*) as count
             from ${from}
            where ${cursor} > $1 and ($2::text is null or ${cursor} <= $2) and ${where} ${narrowed.sql}`,
    values: [after, upTo ?? null, ...narrowed.values],
  });
  return rows[0]?.count ?? 0;
}

function narrow(kind: ListedKind, within: Within | undefined, place: number): { sql: string; values: string[] } {
  if (within === undefined) return { sql: "", values: [] };
  if ("apiId" in within) return { sql: `and t.api_id = $${place}`, values: [within.apiId] };
  return { sql: `and ${LISTS[kind].workspace} = $${place}`, values: [within.workspaceId] };
}

/** Record kinds in the order of a full projection: referenced kinds come first. */
export const LISTED_KINDS = [
  "workspace",
  "api",
  "namespace",
  "role",
  "identity",
  "overridePatterns",
  "override",
  "key",
  "policy",
  // `namespaceName` is last, so that an older relay, which does not support it, can resume an interrupted projection at the kind before it.
  "namespaceName",
] as const satisfies readonly RecordKind[];
export type ListedKind = (typeof LISTED_KINDS)[number];

/**
 * SQL that selects the refs of a kind. The rows are sorted and paged by the expression `cursor`, which has a unique index. It may differ
 * from the ref's id: the ref of a key has the key's hash, but keys are paged by their id.
 */
interface Listed {
  readonly workspace: string;
  readonly id: string;
  readonly cursor: string;
  readonly from: string;
  readonly where: string;
}

const entities = (table: string, where = "true"): Listed => ({
  workspace: "t.workspace_id",
  id: "t.id",
  cursor: "t.id",
  from: `${table} t`,
  where,
});

/**
 * Source of each kind's refs. Deleted APIs and identities are included, because their tombstones distinguish a deleted record from an
 * unknown one.
 */
const LISTS: Readonly<Record<ListedKind, Listed>> = {
  workspace: { ...entities("workspaces"), workspace: "t.id" },
  api: entities("apis"),
  namespace: entities("ratelimit_namespaces"),
  role: entities("roles"),
  identity: entities("identities"),
  overridePatterns: entities(
    "ratelimit_namespaces",
    `exists (select from ratelimit_overrides o
              where o.namespace_id = t.id and o.deleted_at is null and position('*' in o.identifier) > 0)`,
  ),
  override: {
    ...entities("ratelimit_overrides", "t.deleted_at is null"),
    id: "t.namespace_id || '/' || t.identifier",
  },
  key: { ...entities("keys", "t.deleted_at is null"), id: "t.hash" },
  policy: entities(POLICY_IDS),
  namespaceName: { ...entities("ratelimit_namespaces", "t.deleted_at is null"), id: "t.name" },
};
