-- The counts of a day per key alone: fewer and narrower rows than verification_counts_day has, for questions about keys that ask for
-- neither outcome nor tags, owner or place.
create table verification_key_totals_day (
  time          date not null,
  spent_credits bigint not null,
  count         bigint not null,
  workspace_id  text not null,
  key_space_id  text not null,
  key_id        text not null,
  primary key (workspace_id, time, key_id, key_space_id)
) partition by range (time);

do $$
declare
  counts record;
begin
  for counts in
    select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'verification_counts_day'::regclass
  loop
    execute format(
      'create table %I partition of verification_key_totals_day %s with (fillfactor = 70)',
      replace(counts.name, 'verification_counts_day', 'verification_key_totals_day'),
      counts.bounds
    );
  end loop;
end $$;

-- What was counted before: by builds between two releases alone.
insert into verification_key_totals_day (time, spent_credits, count, workspace_id, key_space_id, key_id)
  select time, least(sum(spent_credits), 9007199254740991), least(sum(count), 9007199254740991), workspace_id, key_space_id, key_id
    from verification_counts_day
   group by time, workspace_id, key_space_id, key_id;

-- What analytics.key_verifications_per_day_v1 has in these columns, in fewer rows.
create view analytics.key_totals_per_day with (security_barrier, security_invoker) as
  select t.time, t.workspace_id collate "C" as workspace_id, t.key_space_id collate "C" as key_space_id,
         t.key_id collate "C" as key_id, t.spent_credits, t.count
    from verification_key_totals_day t
   where t.workspace_id = (select analytics.workspace_id())
     and t.time >= (select analytics.visible_from_bucket('day')::date)
     and ((select analytics.within()) is null or t.key_space_id = any ((select analytics.within())::text[]));
