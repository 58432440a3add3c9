-- When each root key last called v1. A table of its own, because a change of a row of root_keys makes every api-server read that
-- root key again.
create table root_key_v1_uses (
  root_key_id  text primary key references root_keys (id),
  workspace_id text not null references workspaces (id),
  last_used_on date not null
);
