-- Usage events, with one partition per day, so that retention drops whole partitions. `day` is the UTC date of `time`. Event ids are random, so
-- they follow the time in the primary key: new events of a workspace are then neighbors in the index, which queries by time use as well.
create table verification_events (
  day           date not null,
  id            text not null,
  request_id    text not null,
  time          bigint not null,
  workspace_id  text not null,
  key_space_id  text not null,
  api_id        text not null,
  key_id        text not null,
  identity_id   text not null default '',
  external_id   text not null default '',
  outcome       text not null,
  tags          text[] not null default '{}',
  source        text not null,
  -- Policy whose gate verified the key; '' for a verification by the API.
  app_id        text not null default '',
  region        text not null default '',
  spent_credits bigint not null default 0,
  latency_ms    double precision not null default 0,
  primary key (workspace_id, time, id, day)
) partition by range (day);

create table ratelimit_events (
  day          date not null,
  id           text not null,
  request_id   text not null,
  time         bigint not null,
  workspace_id text not null,
  namespace_id text not null,
  identifier   text not null,
  passed       boolean not null,
  latency_ms   double precision not null default 0,
  override_id  text not null default '',
  max_count    bigint not null,
  remaining    bigint not null,
  reset_at     bigint not null,
  cost         bigint not null,
  primary key (workspace_id, time, id, day)
) partition by range (day);

-- Event counts per minute, hour, day and month (UTC). `dims` is the first half of the SHA-256 over all columns that distinguish rows of one
-- bucket, because pods write these values and they may be longer than an index allows. `tags` is sorted.
do $$
declare
  bucket text;
  kind text;
begin
  foreach bucket in array array['minute', 'hour', 'day', 'month'] loop
    kind := case when bucket in ('minute', 'hour') then 'timestamp' else 'date' end;
    execute format($table$
      create table verification_counts_%1$s (
        time          %2$s not null,
        spent_credits bigint not null,
        count         bigint not null,
        workspace_id  text not null,
        key_space_id  text not null,
        key_id        text not null,
        identity_id   text not null,
        external_id   text not null,
        outcome       text not null,
        source        text not null,
        app_id        text not null,
        tags          text[] not null,
        dims          bytea not null,
        primary key (workspace_id, time, dims)
      ) partition by range (time)
    $table$, bucket, kind);
    execute format($table$
      create table ratelimit_counts_%1$s (
        time          %2$s not null,
        passed        bigint not null,
        total         bigint not null,
        passed_tokens bigint not null,
        total_tokens  bigint not null,
        workspace_id  text not null,
        namespace_id  text not null,
        identifier    text not null,
        dims          bytea not null,
        primary key (workspace_id, time, dims)
      ) partition by range (time)
    $table$, bucket, kind);
  end loop;
end $$;
-- For the usage of a single key. A key id has at most 256 characters, so that an index can contain it.
create index verification_counts_hour_of_key on verification_counts_hour (workspace_id, key_id, time);
create index verification_counts_day_of_key on verification_counts_day (workspace_id, key_id, time);

-- Usage of an API, independent of its number of keys.
create table verification_totals_hour (
  time          timestamp not null,
  spent_credits bigint not null,
  count         bigint not null,
  workspace_id  text not null,
  key_space_id  text not null,
  outcome       text not null,
  primary key (workspace_id, key_space_id, time, outcome)
) partition by range (time);
-- Daily counts per key: fewer and narrower rows than verification_counts_day, for queries without outcome, tags, owner or source.
create table verification_key_totals_day (
  time          date not null,
  spent_credits bigint not null,
  count         bigint not null,
  workspace_id  text not null,
  key_space_id  text not null,
  key_id        text not null,
  primary key (workspace_id, time, key_id, key_space_id)
) partition by range (time);

-- New events of one batch, counted per minute.
create type verification_group as (
  time          timestamp,
  spent_credits bigint,
  count         bigint,
  key_space_id  text,
  key_id        text,
  identity_id   text,
  external_id   text,
  outcome       text,
  source        text,
  app_id        text,
  tags          text[]
);
create type ratelimit_group as (
  time          timestamp,
  passed        bigint,
  total         bigint,
  passed_tokens bigint,
  total_tokens  bigint,
  namespace_id  text,
  identifier    text
);
-- Stored events that the roll-ups do not contain yet. The transaction that stores events inserts their row; the transaction that adds the
-- counts deletes it.
create table rollup_queue (
  id            bigint generated always as identity primary key,
  workspace_id  text not null,
  queued_at     timestamptz not null default clock_timestamp(),
  events        integer not null,
  groups        integer not null,
  verifications verification_group[] not null,
  ratelimits    ratelimit_group[] not null
);

-- Retention in days, and limits of usage queries. null, and a workspace without a row, mean the default.
create table analytics_settings (
  workspace_id           text primary key,
  verifications_days     integer check (verifications_days > 0),
  ratelimits_days        integer check (ratelimits_days > 0),
  ratelimits_minute_days integer check (ratelimits_minute_days > 0),
  ratelimits_hour_days   integer check (ratelimits_hour_days > 0),
  ratelimits_day_days    integer check (ratelimits_day_days > 0),
  ratelimits_month_days  integer check (ratelimits_month_days > 0),
  enabled                boolean not null default true,
  rows_max               bigint,
  timeout_ms             bigint,
  memory_bytes_max       bigint,
  response_bytes_max     bigint,
  queries_per_hour       bigint,
  run_ms_per_hour        bigint
);
