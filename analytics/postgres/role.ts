import type { Pool } from "pg";
import { takeLock } from "../../postgres/advisory-locks.ts";
import { failureCode } from "../../postgres/failures.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/*
 * Role that runs the queries of callers. It can read the views of schema `analytics`. In the views' base tables, it can read only the same
 * columns and, because of row-level security, only the same rows. Postgres roles belong to the server, so several databases share this
 * role.
 */

export const ANALYTICS_ROLE = "postern_analytics";

/**
 * A base table of the views, the columns of it that the role may read, and the column that is restricted to the ids that a root key may
 * read.
 */
interface Source {
  readonly table: string;
  readonly columns: string;
  readonly within: string;
}

const COUNTS = ["minute", "hour", "day", "month"].flatMap((bucket): Source[] => [
  {
    table: `verification_counts_${bucket}`,
    columns:
      "time, workspace_id, key_space_id, key_id, external_id, outcome, tags, source, app_id, spent_credits, count",
    within: "key_space_id",
  },
  {
    table: `ratelimit_counts_${bucket}`,
    columns: "time, workspace_id, namespace_id, identifier, passed, total, total_tokens, passed_tokens",
    within: "namespace_id",
  },
]);

const SOURCES: readonly Source[] = [
  {
    table: "verification_events",
    columns:
      "day, time, request_id, workspace_id, key_space_id, key_id, external_id, outcome, tags, source, app_id, region, spent_credits",
    within: "key_space_id",
  },
  {
    table: "ratelimit_events",
    columns:
      "day, time, request_id, workspace_id, namespace_id, identifier, passed, latency_ms, override_id, max_count, remaining, reset_at, cost",
    within: "namespace_id",
  },
  ...COUNTS,
  {
    table: "verification_key_totals_day",
    columns: "time, workspace_id, key_space_id, key_id, spent_credits, count",
    within: "key_space_id",
  },
];

const FUNCTIONS = [
  "scope()",
  "workspace_id()",
  "visible_from_ms(text)",
  "visible_from_day()",
  "visible_from_bucket(text)",
  "within()",
];

const LOCK_MS_MAX = 500;

const INSUFFICIENT_PRIVILEGE = "42501";
/** Error codes raised when another process has created the role concurrently. */
const MADE_MEANWHILE: ReadonlySet<string | undefined> = new Set(["42710", "23505"]);

interface RoleState {
  readonly exists: boolean;
  readonly usable: boolean;
  readonly superuser: boolean;
}

/**
 * Creates the role and its missing privileges. Returns false if no query can run: the role does not exist and the database user may not
 * create it, or the role is not granted to this user. Throws if a table lock was not available; the next call may succeed.
 */
export async function prepareAnalyticsRole(db: Pool): Promise<boolean> {
  const before = await readRoleState(db);
  if (!before.exists && !(await makeRole(db))) return false;
  const state = await readRoleState(db);
  if (!state.usable && !(await joinRole(db))) return false;
  await inShortTransaction(db, grantViews);
  for (const source of SOURCES) {
    // Locks one table at a time. Waiting for a second lock while holding the first would make all other transactions wait.
    if (!(await isBoundByRows(db, source.table))) await inShortTransaction(db, (tx) => bindRows(tx, source));
  }
  if (state.superuser) await inShortTransaction(db, revokeFromAll);
  return true;
}

async function readRoleState(db: Queryable): Promise<RoleState> {
  const { rows } = await db.query<RoleState>({
    name: "read-analytics-role",
    text: `select r.oid is not null as exists,
                  coalesce(pg_has_role(current_user, r.oid, 'MEMBER'), false) as usable,
                  (select u.rolsuper from pg_roles u where u.rolname = current_user) as superuser
             from (select) one left join pg_roles r on r.rolname = $1`,
    values: [ANALYTICS_ROLE],
  });
  return rows[0] ?? { exists: false, usable: false, superuser: false };
}

/**
 * Creates the role with NOINHERIT. If an administrator grants another role to it, for example for a report, callers' queries can still read
 * only the rows of their scope.
 */
async function makeRole(db: Queryable): Promise<boolean> {
  try {
    await db.query(`create role ${ANALYTICS_ROLE} nologin noinherit`);
  } catch (error) {
    if (failureCode(error) === INSUFFICIENT_PRIVILEGE) return false;
    if (!MADE_MEANWHILE.has(failureCode(error))) throw error;
  }
  return true;
}

/** In Postgres, a user that creates a role may grant it, but does not become a member automatically. */
async function joinRole(db: Queryable): Promise<boolean> {
  try {
    await db.query(`grant ${ANALYTICS_ROLE} to current_user`);
    return true;
  } catch (error) {
    if (failureCode(error) === INSUFFICIENT_PRIVILEGE) return false;
    throw error;
  }
}

async function grantViews(tx: Queryable): Promise<void> {
  const functions = FUNCTIONS.map((signature) => `analytics.${signature}`).join(", ");
  await tx.query(`grant usage on schema analytics to ${ANALYTICS_ROLE}`);
  await tx.query(`grant execute on function ${functions} to ${ANALYTICS_ROLE}`);
  const { rows } = await tx.query<{ name: string }>(
    "select v.viewname as name from pg_views v where v.schemaname = 'analytics'",
  );
  for (const { name } of rows) await tx.query(`grant select on analytics.${name} to ${ANALYTICS_ROLE}`);
}

async function isBoundByRows(db: Queryable, table: string): Promise<boolean> {
  const text = `select c.relrowsecurity as bound
                  from pg_class c where c.relname = $1 and c.relnamespace = current_schema()::regnamespace`;
  const { rows } = await db.query<{ bound: boolean }>(text, [table]);
  return rows[0]?.bound === true;
}

/**
 * Restricts the role to the rows of its scope by row-level security, even if it reads the tables beneath the views. Other roles with access
 * still read all rows. The table's owner, who stores events, is exempt.
 */
async function bindRows(tx: Queryable, { table, columns, within }: Source): Promise<void> {
  await tx.query(`grant select (${columns}) on ${table} to ${ANALYTICS_ROLE}`);
  await tx.query(`create policy everyone on ${table} using (true)`);
  await tx.query(
    `create policy bound_scope on ${table} as restrictive for select to ${ANALYTICS_ROLE}
       using (workspace_id = (select analytics.workspace_id())
              and ((select analytics.within()) is null or ${within} = any ((select analytics.within())::text[])))`,
  );
  await tx.query(`alter table ${table} enable row level security`);
}

/**
 * Revokes functions from PUBLIC, because every role inherits the privileges of PUBLIC. These functions sleep, read large objects, connect
 * to other servers or run text as SQL, and nothing in this database uses them. Only a superuser can revoke them; otherwise, only the
 * dialect's allow-list blocks them.
 */
async function revokeFromAll(tx: Queryable): Promise<void> {
  const { rows } = await tx.query<{ signature: string }>(
    `select p.oid::regprocedure::text as signature
       from pg_proc p
       cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      where a.grantee = 0 and a.privilege_type = 'EXECUTE' and p.prokind = 'f'
        and p.proname ~ '^(pg_sleep.*|lo_.*|loread|lowrite|dblink.*|.*_to_xml.*|ts_stat|ts_rewrite)$'`,
  );
  for (const { signature } of rows) await tx.query(`revoke execute on function ${signature} from public`);
}

async function inShortTransaction(db: Pool, work: (tx: Queryable) => Promise<void>): Promise<void> {
  const tx = await db.connect();
  let broken: Error | undefined;
  try {
    await tx.query("begin");
    await tx.query(`set local lock_timeout = ${LOCK_MS_MAX}`);
    // Two replicas that prepare the role concurrently would conflict; the second waits for the first.
    await takeLock(tx, "analyticsRole");
    await work(tx);
    await tx.query("commit");
  } catch (error) {
    await tx.query("rollback").catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    tx.release(broken);
  }
}
