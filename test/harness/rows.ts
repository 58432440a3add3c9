import { createHash } from "node:crypto";
import type { Pool } from "pg";
import type { RecordRef } from "../../edge/records.ts";

/*
 * Rows for tests that need many, written as in psql and announced only by triggers. Ids, hashes, names and creation times sort differently,
 * as in production, so that a statement that pages by one and sorts by another loses rows in a test.
 */

/** Returns 24 hexadecimal digits derived from the text by a hash. */
const scrambled = (text: string): string => createHash("md5").update(text).digest("hex").slice(0, 24);

export interface RowsOfWorkspace {
  readonly workspaceId: string;
  readonly apiId: string;
}

export interface KeyRow {
  readonly id: string;
  readonly hash: string;
  readonly ref: RecordRef;
}

/** Returns the n-th key that `insertKeys` creates in an API. */
export function keyRow({ workspaceId, apiId }: RowsOfWorkspace, n: number): KeyRow {
  const hash = createHash("sha256").update(`secret ${apiId} ${n}`).digest("base64");
  return { id: `key_${scrambled(`id ${apiId} ${n}`)}`, hash, ref: { workspaceId, kind: "key", id: hash } };
}

/** Inserts a workspace with one API. */
export async function insertWorkspace(db: Pool, name: string): Promise<RowsOfWorkspace> {
  const [workspaceId, apiId] = [`ws_${scrambled(name)}`, `api_${scrambled(`api of ${name}`)}`];
  await db.query("insert into workspaces (id, name, created_at) values ($1, $2, 1)", [workspaceId, name]);
  await db.query("insert into apis (id, workspace_id, key_space_id, name, created_at) values ($1, $2, $3, $4, 1)", [
    apiId,
    workspaceId,
    `ks_${scrambled(name)}`,
    name,
  ]);
  return { workspaceId, apiId };
}

/** Inserts keys `from` to `to − 1` of an API in one statement; see `keyRow`. */
export async function insertKeys(
  db: Pool,
  { workspaceId, apiId }: RowsOfWorkspace,
  { from = 0, to }: { from?: number; to: number },
): Promise<void> {
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select 'key_' || left(md5('id ' || $1 || ' ' || n), 24), $2, $1,
            encode(sha256(convert_to('secret ' || $1 || ' ' || n, 'UTF8')), 'base64'), 's', ($4 - n) * 7919 % 100003
       from generate_series($3::bigint, $4::bigint - 1) as n`,
    [apiId, workspaceId, from, to],
  );
}

/** Inserts `count` rows of each other projected kind into the workspace. */
export async function insertOtherKinds(
  db: Pool,
  { workspaceId, apiId }: RowsOfWorkspace,
  count: number,
): Promise<void> {
  const id = (prefix: string) => `'${prefix}_' || left(md5('${prefix} ' || $1 || ' ' || n), 24)`;
  const each = "from generate_series(1, $2::bigint) as n";
  const statements = [
    `insert into apis (id, workspace_id, key_space_id, name, created_at)
     select ${id("api")}, $1, ${id("ks")}, 'n' || n, n ${each}`,
    `insert into identities (id, workspace_id, external_id, created_at) select ${id("id")}, $1, 'u' || n, n ${each}`,
    `insert into roles (id, workspace_id, name, created_at) select ${id("role")}, $1, 'r' || n, n ${each}`,
    `insert into ratelimit_namespaces (id, workspace_id, name, created_at)
     select ${id("rlns")}, $1, 's' || n, n ${each}`,
    `insert into ratelimit_overrides (id, workspace_id, namespace_id, identifier, max_count, duration_ms, created_at)
     select ${id("rlor")}, $1, ${id("rlns")}, case when n % 2 = 0 then 'who*' else 'who' end, 1, 1000, n ${each}`,
  ];
  for (const statement of statements) await db.query(statement, [workspaceId, count]);
  await db.query(
    `insert into policies (id, former_id, workspace_id, api_id, name, uid, generation, policy, created_at)
     select ${id("pol")}, case when n = 1 then ${id("former")} end, $1, $3, 'p' || n, 'uid', 1, '{}', n ${each}`,
    [workspaceId, count, apiId],
  );
}
