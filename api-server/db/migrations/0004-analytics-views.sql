-- Usage queries of customers read these views: one per public table, with its columns. The views apply the bounds of a query (workspace, key
-- spaces or namespaces, retention), so that no part of the customer's SELECT can avoid them.

-- If the database user may not create schemas, an administrator has created this one with that user as its owner.
do $$ begin
  if not exists (select from pg_namespace where nspname = 'analytics') then
    create schema analytics;
  end if;
end $$;

-- The scope of a query is a setting of its transaction. Any role may change a setting, so the scope is sealed; only functions of this schema
-- read the key.
create table analytics.seal_key (key bytea not null);
insert into analytics.seal_key
  select sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));

-- HMAC construction. It includes the start time of the transaction, so that a sealed scope is invalid in another transaction.
create function analytics.seal(scope text) returns text
  language sql stable parallel safe set search_path = pg_catalog, pg_temp as $$
  select encode(sha256(k.key || sha256(k.key || convert_to(extract(epoch from now())::text || ' ' || scope, 'UTF8'))), 'hex')
    from analytics.seal_key k
$$;

-- Limits the current transaction to a workspace, to the key spaces or namespaces in `within` (null: all), and to a start time for each of
-- `raw`, `minute`, `hour`, `day` and `month`, Unix ms.
create function analytics.bind_scope(workspace_id text, within text[], visible_from jsonb) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  scope text := jsonb_build_object('workspaceId', workspace_id, 'within', to_jsonb(within), 'visibleFrom', visible_from)::text;
begin
  perform set_config('postern.analytics_scope', analytics.seal(scope) || scope, true);
end $$;

-- Returns null if this transaction has no scope or an invalid seal: then no row is visible.
create function analytics.scope() returns jsonb
  language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
declare
  sealed text := current_setting('postern.analytics_scope', true);
begin
  if left(sealed, 64) = analytics.seal(substr(sealed, 65)) then
    return substr(sealed, 65)::jsonb;
  end if;
  return null;
end $$;

create function analytics.workspace_id() returns text
  language sql stable parallel safe as $$ select analytics.scope() ->> 'workspaceId' $$;
create function analytics.visible_from_ms(bucket text) returns bigint
  language sql stable parallel safe as $$ select (analytics.scope() -> 'visibleFrom' ->> $1)::bigint $$;
create function analytics.visible_from_day() returns date
  language sql stable parallel safe as $$ select (to_timestamp(analytics.visible_from_ms('raw') / 1000.0) at time zone 'UTC')::date $$;
-- Start of the first bucket that is at least partly visible.
create function analytics.visible_from_bucket(bucket text) returns timestamp
  language sql stable parallel safe as $$
  select date_trunc($1, to_timestamp(analytics.visible_from_ms($1) / 1000.0) at time zone 'UTC')
$$;
-- Returns null if all are visible.
create function analytics.within() returns text[]
  language sql stable parallel safe as $$
  select case when s.scope -> 'within' = 'null' then null else array(select jsonb_array_elements_text(s.scope -> 'within')) end
    from (select analytics.scope() as scope) s
$$;

revoke execute on all functions in schema analytics from public;

-- Each bound is a subquery, so that it is computed once per query and not per row.
--
-- The views of raw events are not security barriers. Postgres plans a barrier view without the ORDER BY and LIMIT around it, so that the
-- newest 50 of a million events would cost reading all of them. Row-level security on their tables is the barrier for the workspace and the
-- permissions of the root key; only the retention depends on these views.
create view analytics.key_verifications_v1 with (security_invoker) as
  select e.time, e.request_id collate "C" as request_id, e.workspace_id collate "C" as workspace_id,
         e.key_space_id collate "C" as key_space_id, e.key_id collate "C" as key_id, e.external_id collate "C" as external_id,
         e.outcome collate "C" as outcome, e.tags collate "C" as tags, e.source collate "C" as source,
         e.app_id collate "C" as app_id, e.region collate "C" as region, e.spent_credits
    from verification_events e
   where e.workspace_id = (select analytics.workspace_id())
     and e.day >= (select analytics.visible_from_day())
     and e.time >= (select analytics.visible_from_ms('raw'))
     and ((select analytics.within()) is null or e.key_space_id = any ((select analytics.within())::text[]));

create view analytics.ratelimits_v1 with (security_invoker) as
  select e.time, e.request_id collate "C" as request_id, e.workspace_id collate "C" as workspace_id,
         e.namespace_id collate "C" as namespace_id, e.identifier collate "C" as identifier, e.passed, e.latency_ms as latency,
         e.override_id collate "C" as override_id, e.max_count as "limit", e.remaining, e.reset_at, e.cost as tokens
    from ratelimit_events e
   where e.workspace_id = (select analytics.workspace_id())
     and e.day >= (select analytics.visible_from_day())
     and e.time >= (select analytics.visible_from_ms('raw'))
     and ((select analytics.within()) is null or e.namespace_id = any ((select analytics.within())::text[]));

-- Counts per minute, hour, day and month. A bucket is visible if any part of it is within the retention.
do $$
declare
  bucket text;
  kind text;
begin
  foreach bucket in array array['minute', 'hour', 'day', 'month'] loop
    kind := case when bucket in ('minute', 'hour') then 'timestamp' else 'date' end;
    execute format($view$
      create view analytics.key_verifications_per_%1$s_v1 with (security_barrier, security_invoker) as
        select c.time, c.workspace_id collate "C" as workspace_id, c.key_space_id collate "C" as key_space_id,
               c.key_id collate "C" as key_id, c.external_id collate "C" as external_id, c.outcome collate "C" as outcome,
               c.tags collate "C" as tags, c.source collate "C" as source, c.app_id collate "C" as app_id, c.spent_credits, c.count
          from verification_counts_%1$s c
         where c.workspace_id = (select analytics.workspace_id())
           and c.time >= (select analytics.visible_from_bucket('%1$s')::%2$s)
           and ((select analytics.within()) is null or c.key_space_id = any ((select analytics.within())::text[]))
    $view$, bucket, kind);
    execute format($view$
      create view analytics.ratelimits_per_%1$s_v1 with (security_barrier, security_invoker) as
        select c.time, c.workspace_id collate "C" as workspace_id, c.namespace_id collate "C" as namespace_id,
               c.identifier collate "C" as identifier, c.passed, c.total, c.total_tokens, c.passed_tokens
          from ratelimit_counts_%1$s c
         where c.workspace_id = (select analytics.workspace_id())
           and c.time >= (select analytics.visible_from_bucket('%1$s')::%2$s)
           and ((select analytics.within()) is null or c.namespace_id = any ((select analytics.within())::text[]))
    $view$, bucket, kind);
  end loop;
end $$;

-- Same contents as analytics.key_verifications_per_day_v1 in these columns, in fewer rows.
create view analytics.key_totals_per_day with (security_barrier, security_invoker) as
  select t.time, t.workspace_id collate "C" as workspace_id, t.key_space_id collate "C" as key_space_id,
         t.key_id collate "C" as key_id, t.spent_credits, t.count
    from verification_key_totals_day t
   where t.workspace_id = (select analytics.workspace_id())
     and t.time >= (select analytics.visible_from_bucket('day')::date)
     and ((select analytics.within()) is null or t.key_space_id = any ((select analytics.within())::text[]));
