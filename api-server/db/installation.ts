import { ADVISORY_LOCKS } from "../../postgres/advisory-locks.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/* State of Postgres and its connections, for administrators of an installation. The statements are not specific to a workspace. */

export interface PostgresState {
  readonly version: string;
  readonly sizeBytes: number;
  readonly connections: number;
  readonly connectionsMax: number;
  readonly startedAt: number;
  readonly isReplica: boolean;
  /** Name of the newest migration; `null` before the first. */
  readonly migration: string | null;
}

export async function findPostgresState(db: Queryable): Promise<PostgresState> {
  const text = `select current_setting('server_version') as version,
                       pg_database_size(current_database())::float8 as "sizeBytes",
                       (select count(*) from pg_stat_activity a where a.datname = current_database())::int as connections,
                       current_setting('max_connections')::int as "connectionsMax",
                       (extract(epoch from pg_postmaster_start_time()) * 1000)::float8 as "startedAt",
                       pg_is_in_recovery() as "isReplica",
                       (select m.file_name from schema_migrations m order by m.version desc limit 1) as migration`;
  const { rows } = await db.query<PostgresState>({ name: "find-postgres-state", text });
  const [row] = rows;
  if (row === undefined) throw new Error("Postgres says nothing of itself");
  return row;
}

export interface RelayHolder {
  /** Start time of the relay's connection, Unix ms. */
  readonly since: number;
  /** Client host of the relay's connection; `null` for a local one. */
  readonly host: string | null;
}

/**
 * Returns the process that holds the relay's lock; `undefined` if no process holds it or the database user lacks permission to see the
 * holder.
 */
export async function findRelayHolder(db: Queryable): Promise<RelayHolder | undefined> {
  const text = `select (extract(epoch from a.backend_start) * 1000)::float8 as since, host(a.client_addr) as host
                  from pg_locks l
                  join pg_stat_activity a on a.pid = l.pid
                 where l.locktype = 'advisory' and l.granted and l.objid = $1 and l.objsubid = 1
                   and l.database = (select d.oid from pg_database d where d.datname = current_database())`;
  const values = [ADVISORY_LOCKS.relay];
  const { rows } = await db.query<RelayHolder>({ name: "find-relay-holder", text, values });
  return rows[0];
}

/**
 * Returns the number of connections with this application name. It equals the number of api-servers, because each has exactly one
 * connection for health checks.
 */
export async function countConnectionsNamed(db: Queryable, applicationName: string): Promise<number> {
  const text = `select count(*)::int as connections from pg_stat_activity a
                 where a.datname = current_database() and a.application_name = $1`;
  const { rows } = await db.query<{ connections: number }>({
    name: "count-connections-named",
    text,
    values: [applicationName],
  });
  return rows[0]?.connections ?? 0;
}

/** Returns the number of recoverable keys that each encryption key has encrypted, over all workspaces. */
export async function countSecretsByEncryptionKey(db: Queryable): Promise<{ id: string; keys: number }[]> {
  const text = `select s.encryption_key_id as id, count(*)::float8 as keys
                  from key_secrets s
                 group by s.encryption_key_id
                 order by s.encryption_key_id`;
  const { rows } = await db.query<{ id: string; keys: number }>({ name: "count-secrets-by-encryption-key", text });
  return rows;
}

/** Returns at most `max` policies of all workspaces. The caller uses them to look up sidecars. */
export async function listEveryPolicyRef(
  db: Queryable,
  { max }: { max: number },
): Promise<{ workspaceId: string; policyId: string }[]> {
  const text = `select p.workspace_id as "workspaceId", p.id as "policyId"
                  from policies p
                 where p.deleted_at is null
                 order by p.workspace_id, p.id
                 limit $1`;
  const { rows } = await db.query<{ workspaceId: string; policyId: string }>({
    name: "list-every-policy-ref",
    text,
    values: [max],
  });
  return rows;
}
