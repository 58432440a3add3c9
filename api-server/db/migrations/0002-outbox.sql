-- Records that the relay has to project again. An entry states that a record changed, not how. Entries are not unique per record: two
-- transactions that change one record each add an entry, because the later commit would otherwise lose its own. `tx` lets a transaction
-- list its own entries before it commits.
--
-- Kinds without a table of their own:
--   keyId       the key with this id, under its hash at the time of reading
--   key         a hash that may no longer belong to a key, so that it gets a tombstone
--   everything  a table was truncated: all records are projected again; the workspace is '*'
--
-- Entries name a key by its id, and the relay reads the hash together with the record. A trigger that read the hash from another table
-- would read it without a lock: if another transaction changed the hash at the same time, the entry would name a hash that no key has, and
-- the change would never reach the pods.
--
-- No trigger notifies. NOTIFY takes a lock of the whole server at commit, so that transactions commit one at a time. The api-server wakes the
-- relay after the commit, and the relay polls once a second.
create table outbox (
  seq          bigint generated always as identity primary key,
  workspace_id text not null,
  kind         text not null,
  id           text not null,
  tx           xid8 not null default pg_current_xact_id(),
  -- Later entries of a large transaction. The relay takes other entries first, so that a change of a million rows delays no revocation.
  bulk         boolean not null default false
);
create index outbox_by_tx on outbox (tx);
-- A batch takes the oldest entries of each workspace, and finds them by one step in this index.
create index outbox_by_turn on outbox (bulk, workspace_id, seq);

-- Recently relayed changes. A Redis that lost data may have lost change stream entries that a gate has not read. Before a new projection
-- is complete, the relay announces these changes again.
create table recent_changes (
  -- Unix ms, by the clock of this server.
  relayed_at   bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint,
  workspace_id text not null,
  kind         text not null,
  id           text not null
);
create index recent_changes_by_time on recent_changes (relayed_at);

create sequence projection_version;

create function outbox_add(workspace_id text, kind text, id text) returns void language plpgsql as $$
declare
  -- Number of entries of this transaction. The setting is unset or empty in the next one.
  entries integer := coalesce(nullif(current_setting('postern.outbox_entries', true), ''), '0')::integer + 1;
begin
  perform set_config('postern.outbox_entries', entries::text, true);
  insert into outbox (workspace_id, kind, id, bulk) values ($1, $2, $3, entries > 200);
end $$;

create function outbox_keys() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform outbox_add(old.workspace_id, 'key', old.hash);
    return null;
  end if;
  perform outbox_add(new.workspace_id, 'keyId', new.id);
  if tg_op = 'UPDATE' and (new.hash, new.workspace_id) is distinct from (old.hash, old.workspace_id) then
    perform outbox_add(old.workspace_id, 'key', old.hash);
  end if;
  return null;
end $$;
create trigger outbox_insert_delete after insert or delete on keys for each row execute function outbox_keys();
-- The time of the last use is not projected. Pods do not get the owner and the environment, but api-servers cache them.
create trigger outbox_update
  after update of id, workspace_id, api_id, hash, name, identity_id, meta, enabled, expires_at, deleted_at, owner_id, environment
  on keys for each row execute function outbox_keys();

-- Rows that belong to a key: permissions, roles, and whether it has credits.
create function outbox_key_parts() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, 'keyId', old.key_id);
  end if;
  if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.key_id <> old.key_id then
    perform outbox_add(new.workspace_id, 'keyId', new.key_id);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on key_permissions for each row execute function outbox_key_parts();
create trigger outbox after insert or update or delete on key_roles for each row execute function outbox_key_parts();
create trigger outbox after insert or delete or update of key_id on key_credits for each row execute function outbox_key_parts();

create function outbox_ratelimits() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    if old.identity_id is not null then
      perform outbox_add(old.workspace_id, 'identity', old.identity_id);
    else
      perform outbox_add(old.workspace_id, 'keyId', old.key_id);
    end if;
  end if;
  if tg_op = 'INSERT' or tg_op = 'UPDATE' and (new.identity_id, new.key_id) is distinct from (old.identity_id, old.key_id) then
    if new.identity_id is not null then
      perform outbox_add(new.workspace_id, 'identity', new.identity_id);
    else
      perform outbox_add(new.workspace_id, 'keyId', new.key_id);
    end if;
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on ratelimits for each row execute function outbox_ratelimits();

-- Records that have the id of their row; the argument is the kind of the record.
create function outbox_entity() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, tg_argv[0], old.id);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.id <> old.id or new.workspace_id <> old.workspace_id) then
    perform outbox_add(new.workspace_id, tg_argv[0], new.id);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on identities for each row execute function outbox_entity('identity');
create trigger outbox after insert or update or delete on apis for each row execute function outbox_entity('api');
create trigger outbox after insert or update or delete on roles for each row execute function outbox_entity('role');

-- The records of keys contain the key space of their API. No key is created meanwhile, because that would wait for this row.
create function outbox_key_spaces() returns trigger language plpgsql as $$
begin
  perform outbox_add(k.workspace_id, 'keyId', k.id) from keys k where k.api_id = new.id;
  return null;
end $$;
create trigger outbox_key_space after update of key_space_id on apis
  for each row when (old.key_space_id <> new.key_space_id) execute function outbox_key_spaces();

-- A policy is projected under its id and its former id. OLD is null for an insert, NEW for a delete.
create function outbox_policies() returns trigger language plpgsql as $$
begin
  perform outbox_add(changed.workspace_id, 'policy', changed.id)
     from (select distinct named.workspace_id, named.id
             from (values (old.workspace_id, old.id), (old.workspace_id, old.former_id),
                          (new.workspace_id, new.id), (new.workspace_id, new.former_id)) as named (workspace_id, id)
            where named.id is not null) as changed;
  return null;
end $$;
create trigger outbox after insert or update or delete on policies for each row execute function outbox_policies();

create function outbox_workspaces() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.id, 'workspace', old.id);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.id <> old.id) then
    perform outbox_add(new.id, 'workspace', new.id);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on workspaces for each row execute function outbox_workspaces();

create function outbox_role_permissions() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, 'role', old.role_id);
  end if;
  if tg_op <> 'DELETE' then
    perform outbox_add(new.workspace_id, 'role', new.role_id);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on role_permissions
  for each row execute function outbox_role_permissions();

create function outbox_root_keys() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, 'rootKey', old.hash);
  end if;
  if tg_op <> 'DELETE' then
    perform outbox_add(new.workspace_id, 'rootKey', new.hash);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on root_keys for each row execute function outbox_root_keys();

create function outbox_namespaces() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, 'namespace', old.id);
    perform outbox_add(old.workspace_id, 'namespaceName', old.name);
  end if;
  if tg_op <> 'DELETE' then
    perform outbox_add(new.workspace_id, 'namespace', new.id);
    perform outbox_add(new.workspace_id, 'namespaceName', new.name);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on ratelimit_namespaces
  for each row execute function outbox_namespaces();

-- An identifier with a star is a pattern. All patterns of a namespace are one record; each exact identifier is a record.
create function outbox_override(workspace_id text, namespace_id text, identifier text) returns void language sql as $$
  select case when position('*' in $3) > 0 then outbox_add($1, 'overridePatterns', $2) end;
  select outbox_add($1, 'override', $2 || '/' || $3);
$$;
create function outbox_overrides() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_override(old.workspace_id, old.namespace_id, old.identifier);
  end if;
  if tg_op <> 'DELETE' then
    perform outbox_override(new.workspace_id, new.namespace_id, new.identifier);
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on ratelimit_overrides
  for each row execute function outbox_overrides();

-- Records contain slugs of permissions. No procedure changes a slug, but an administrator can, in psql. The lock keeps other transactions
-- from adding the permission to a role or key meanwhile: such an uncommitted link is invisible here, and the relay may process its entry
-- before this transaction commits.
create function outbox_permissions() returns trigger language plpgsql as $$
begin
  lock table key_permissions, role_permissions in share row exclusive mode;
  perform outbox_add(rp.workspace_id, 'role', rp.role_id) from role_permissions rp where rp.permission_id = new.id;
  perform outbox_add(kp.workspace_id, 'keyId', kp.key_id) from key_permissions kp where kp.permission_id = new.id;
  return null;
end $$;
create trigger outbox after update of slug on permissions for each row execute function outbox_permissions();

create function outbox_truncated() returns trigger language plpgsql as $$
begin
  perform outbox_add('*', 'everything', tg_table_name);
  return null;
end $$;
do $$
declare
  name text;
begin
  foreach name in array array['workspaces', 'root_keys', 'apis', 'identities', 'keys', 'key_credits', 'ratelimits', 'permissions', 'roles',
                              'role_permissions', 'key_permissions', 'key_roles', 'ratelimit_namespaces', 'ratelimit_overrides', 'policies']
  loop
    execute format('create trigger outbox_truncated after truncate on %I execute function outbox_truncated()', name);
  end loop;
end $$;
