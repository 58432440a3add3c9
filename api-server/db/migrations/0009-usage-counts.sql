-- The policy whose gate verified the key; '' for the API. Sidecars of the release before do not send it.
alter table verification_events add column app_id text not null default '';

-- How many events there were, per minute, hour, day and month (UTC). `dims` is the first half of the SHA-256 over all columns that
-- tell rows of one bucket apart: these are written by pods, and may be longer than an index allows. `tags` is sorted.
create table verification_counts_minute (
  time          timestamp not null,
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
) partition by range (time);
create table verification_counts_hour (
  time          timestamp not null,
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
) partition by range (time);
create table verification_counts_day (
  time          date not null,
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
) partition by range (time);
create table verification_counts_month (
  time          date not null,
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
) partition by range (time);

-- For the usage of a single key. Its longest column has a bound (256 characters), so that an index can hold it.
create index verification_counts_hour_of_key on verification_counts_hour (workspace_id, key_id, time);
create index verification_counts_day_of_key on verification_counts_day (workspace_id, key_id, time);

-- The usage of an API, whatever the number of its keys.
create table verification_totals_hour (
  time          timestamp not null,
  spent_credits bigint not null,
  count         bigint not null,
  workspace_id  text not null,
  key_space_id  text not null,
  outcome       text not null,
  primary key (workspace_id, key_space_id, time, outcome)
) partition by range (time);

create table ratelimit_counts_minute (
  time          timestamp not null,
  passed        bigint not null,
  total         bigint not null,
  passed_tokens bigint not null,
  total_tokens  bigint not null,
  workspace_id  text not null,
  namespace_id  text not null,
  identifier    text not null,
  dims          bytea not null,
  primary key (workspace_id, time, dims)
) partition by range (time);
create table ratelimit_counts_hour (
  time          timestamp not null,
  passed        bigint not null,
  total         bigint not null,
  passed_tokens bigint not null,
  total_tokens  bigint not null,
  workspace_id  text not null,
  namespace_id  text not null,
  identifier    text not null,
  dims          bytea not null,
  primary key (workspace_id, time, dims)
) partition by range (time);
create table ratelimit_counts_day (
  time          date not null,
  passed        bigint not null,
  total         bigint not null,
  passed_tokens bigint not null,
  total_tokens  bigint not null,
  workspace_id  text not null,
  namespace_id  text not null,
  identifier    text not null,
  dims          bytea not null,
  primary key (workspace_id, time, dims)
) partition by range (time);
create table ratelimit_counts_month (
  time          date not null,
  passed        bigint not null,
  total         bigint not null,
  passed_tokens bigint not null,
  total_tokens  bigint not null,
  workspace_id  text not null,
  namespace_id  text not null,
  identifier    text not null,
  dims          bytea not null,
  primary key (workspace_id, time, dims)
) partition by range (time);

-- Of the events of one portion, those that were new, already counted per minute.
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
-- What is stored and not yet added up. A row is written with the events, and deleted with the sums: in one transaction each.
create table rollup_queue (
  id            bigint generated always as identity primary key,
  workspace_id  text not null,
  queued_at     timestamptz not null default clock_timestamp(),
  events        integer not null,
  groups        integer not null,
  verifications verification_group[] not null,
  ratelimits    ratelimit_group[] not null
);

-- What a workspace has chosen. null, and a workspace without a row, mean the default. Days.
create table analytics_settings (
  workspace_id           text primary key,
  verifications_days     integer check (verifications_days > 0),
  ratelimits_days        integer check (ratelimits_days > 0),
  ratelimits_minute_days integer check (ratelimits_minute_days > 0),
  ratelimits_hour_days   integer check (ratelimits_hour_days > 0),
  ratelimits_day_days    integer check (ratelimits_day_days > 0),
  ratelimits_month_days  integer check (ratelimits_month_days > 0)
);
