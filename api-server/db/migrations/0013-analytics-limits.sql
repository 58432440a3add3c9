-- What a workspace may use of the analytics procedures; null means the default.
alter table analytics_settings
  add column enabled          boolean not null default true,
  add column rows_max         bigint,
  add column timeout_ms       bigint,
  add column memory_bytes_max bigint,
  add column answer_bytes_max bigint,
  add column queries_per_hour bigint,
  add column run_ms_per_hour  bigint;
