import type { CreditStore } from "../../edge/credits/contract.ts";
import type { ReadRecord, RecordRef, RecordSource } from "../../edge/projection/contract.ts";
import type { CreditRow, CreditService } from "../credits/service.ts";
import type { Queryable } from "../store/queryable.ts";

const SQL: Record<string, string> = {
  key: `select json_build_object('keyId', k.id, 'workspaceId', k.workspace_id, 'apiId', k.api_id, 'keySpaceId', a.key_space_id,
          'enabled', k.enabled, 'name', k.name, 'meta', k.meta, 'expiresMs', k.expires_at, 'identityId', k.identity_id,
          'roleIds', array(select role_id from key_roles where key_id = k.id),
          'permissions', array(select p.slug from key_permissions kp join permissions p on p.id = kp.permission_id where kp.key_id = k.id),
          'ratelimits', (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'limit', max_count, 'durationMs', duration_ms, 'autoApply', auto_apply)), '[]') from ratelimits where key_id = k.id),
          'limited', exists (select from key_credits where key_id = k.id)) as data
        from keys k join apis a on a.id = k.api_id where k.workspace_id = $1 and k.hash = $2 and k.deleted_at is null`,
  identity: `select json_build_object('id', i.id, 'externalId', i.external_id, 'meta', i.meta,
          'ratelimits', (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'limit', max_count, 'durationMs', duration_ms, 'autoApply', auto_apply)), '[]') from ratelimits where identity_id = i.id)) as data
        from identities i where i.workspace_id = $1 and i.id = $2 and i.deleted_at is null`,
  role: `select json_build_object('id', r.id, 'name', r.name, 'permissions', array(select p.slug from role_permissions rp join permissions p on p.id = rp.permission_id where rp.role_id = r.id)) as data
        from roles r where r.workspace_id = $1 and r.id = $2`,
  api: `select json_build_object('id', id, 'name', name, 'ipAllowList', case when cardinality(ip_allow_list) > 0 then ip_allow_list end) as data from apis where workspace_id = $1 and id = $2 and deleted_at is null`,
  namespace: `select json_build_object('id', id, 'name', name, 'deleted', deleted_at is not null) as data from ratelimit_namespaces where workspace_id = $1 and id = $2`,
  namespaceName: `select json_build_object('id', id, 'name', name, 'deleted', deleted_at is not null) as data from ratelimit_namespaces where workspace_id = $1 and name = $2 order by (deleted_at is null) desc, created_at desc limit 1`,
  override: `select json_build_object('id', id, 'identifier', identifier, 'limit', max_count, 'durationMs', duration_ms, 'async', async) as data from ratelimit_overrides where workspace_id = $1 and namespace_id = split_part($2, '/', 1) and identifier = substr($2, position('/' in $2) + 1) and deleted_at is null`,
  overridePatterns: `select json_build_object('patterns', coalesce(json_agg(json_build_object('id', id, 'identifier', identifier, 'limit', max_count, 'durationMs', duration_ms, 'async', async)), '[]')) as data from ratelimit_overrides where workspace_id = $1 and namespace_id = $2 and position('*' in identifier) > 0 and deleted_at is null`,
  workspace: `select json_build_object('id', id, 'enabled', enabled) as data from workspaces where id = $1 and id = $2 and deleted_at is null`,
};

const strip = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => v !== null)
      .map(([k, v]) => [k, strip(v)]),
  );
};

export const createRecordSource = (db: Queryable): RecordSource => ({
  async read(refs: readonly RecordRef[]) {
    const records: ReadRecord[] = [];
    for (const ref of refs) {
      const { rows } = await db.query<{ data: unknown }>(SQL[ref.kind] ?? "select 1 where false and $1 = $2", [
        ref.workspaceId,
        ref.id,
      ]);
      records.push(
        rows[0] === undefined ? { state: "gone" } : { state: "found", version: 1, data: strip(rows[0].data) },
      );
    }
    return { usable: true, records };
  },
});

export function createCreditService(db: Queryable, store: CreditStore): CreditService {
  const read = async (keyId: string) =>
    (
      await db.query<{ rev: number; granted: number; spent: number }>(
        "select rev, granted, spent from key_credits where key_id = $1",
        [keyId],
      )
    ).rows[0];
  const service: CreditService = {
    async readRemaining(key) {
      const counter = (await store.read(key)) ?? (await read(key.keyId));
      return counter === undefined ? undefined : counter.granted - counter.spent;
    },
    async readManyRemaining(workspaceId, keyIds) {
      const map = new Map<string, number>();
      for (const keyId of keyIds) {
        const n = await service.readRemaining({ workspaceId, keyId });
        if (n !== undefined) map.set(keyId, n);
      }
      return map;
    },
    async change(tx, key, change) {
      const { rows } = await tx.query<{
        rev: number;
        granted: number;
        spent: number;
        refill_amount: number | null;
        refill_day: number | null;
      }>("select rev, granted, spent, refill_amount, refill_day from key_credits where key_id = $1 for update", [
        key.keyId,
      ]);
      const row = rows[0];
      const counter = await store.suspend(key);
      const current: CreditRow | undefined =
        row === undefined
          ? undefined
          : {
              remaining: row.granted - Math.max(row.spent, counter?.spent ?? 0),
              refillAmount: row.refill_amount,
              refillDay: row.refill_day,
            };
      const next = change(current);
      if (next === undefined) await tx.query("delete from key_credits where key_id = $1", [key.keyId]);
      else
        await tx.query(
          `insert into key_credits (key_id, workspace_id, granted, refill_amount, refill_day, last_refill_on) values ($1, $2, $3, $4, $5, now()::date)
           on conflict (key_id) do update set rev = key_credits.rev + 1, granted = excluded.granted, spent = 0, refill_amount = excluded.refill_amount, refill_day = excluded.refill_day`,
          [key.keyId, key.workspaceId, next.remaining, next.refillAmount, next.refillDay],
        );
      return next;
    },
    async settle(key) {
      const row = await read(key.keyId);
      if (row === undefined) await store.remove(key);
      else await store.load(key, row);
    },
    async load(key) {
      const row = await read(key.keyId);
      if (row !== undefined) await store.load(key, row);
    },
  };
  return service;
}
