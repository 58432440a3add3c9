-- Which permissions each root key is really asked for. A table of its own, as root_key_v1_uses is: a change of a row of root_keys makes
-- every api-server read that root key again.
create table root_key_uses (
  root_key_id  text not null references root_keys (id),
  -- A tuple that it holds; the empty text stands for any call.
  tuple        text not null,
  workspace_id text not null references workspaces (id),
  last_used_on date not null,
  -- Of a tuple with *: the id for which it was asked, as long as that was always the same one.
  only_id      text,
  primary key (root_key_id, tuple)
);
create index root_key_uses_by_workspace on root_key_uses (workspace_id, last_used_on);

-- Nothing is known of the time before, Unix ms.
insert into settings (name, value)
values ('root-key-uses-since', to_jsonb(floor(extract(epoch from now()) * 1000)))
on conflict (name) do nothing;
