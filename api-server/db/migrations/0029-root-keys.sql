-- A label for people, such as production. Of a rotation both root keys name the other one; there is no foreign key, because a root key
-- is never removed. An editor that says which revision it read is refused when another one was quicker. What a root key holds since
-- when tells an unused permission from a new one; null means since it was created.
alter table root_keys
  add column environment            text,
  add column predecessor_id         text,
  add column successor_id           text,
  add column revision               integer not null default 1,
  add column permissions_changed_at bigint;
