-- What was carried lately. A store that went back in time may have lost announcements that a reader had not heard yet: before a
-- new projection claims to be current, these are announced once more.
create table outbox_recent (
  -- Unix ms, by the clock of this server.
  carried_at   bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint,
  workspace_id text not null,
  kind         text not null,
  id           text not null
);
create index outbox_recent_by_time on outbox_recent (carried_at);
