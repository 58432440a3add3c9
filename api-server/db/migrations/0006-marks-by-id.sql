-- Marks name a key's id, and the relay looks the hash up when it reads the record. A trigger that reads the hash from another
-- table reads it without a lock: a transaction that gives the key a new hash at the same time would leave a mark for a hash
-- that no key has any more, and the change would never reach the pods.
--
--   keyId       the key of this id, under whatever hash it has when it is read
--   key         a hash that may have no key any more, so that it gets its tombstone
--   everything  a table was emptied without a word about its rows: all is projected anew; the workspace is '*'
--
-- No trigger notifies. A notification takes a lock of the whole server at commit, which makes transactions commit one after
-- the other; the api-server wakes the relay after the commit instead, and the relay looks once a second in any case.

-- The first marks of a transaction are carried before the rest of it, so that one that changes a million rows delays nobody
-- else's revocation, and no later one of its own workspace either.
alter table outbox add column bulk boolean not null default false;

create or replace function outbox_add(workspace_id text, kind text, id text) returns void language plpgsql as $$
declare
  -- Set by the calls before in this transaction; it is gone, or empty, when the transaction ends.
  marks integer := coalesce(nullif(current_setting('postern.marks', true), ''), '0')::integer + 1;
begin
  perform set_config('postern.marks', marks::text, true);
  insert into outbox (workspace_id, kind, id, bulk) values ($1, $2, $3, marks > 200);
end $$;

create or replace function outbox_keys() returns trigger language plpgsql as $$
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

create or replace function outbox_key_parts() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, 'keyId', old.key_id);
  end if;
  if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.key_id <> old.key_id then
    perform outbox_add(new.workspace_id, 'keyId', new.key_id);
  end if;
  return null;
end $$;

create or replace function outbox_ratelimits() returns trigger language plpgsql as $$
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

-- Only psql changes a slug. Who holds the permission is known for certain only while nobody is being given it: a link that
-- another transaction has not committed yet is invisible here, and its own mark may be carried before this commits.
create or replace function outbox_permissions() returns trigger language plpgsql as $$
begin
  lock table key_permissions, role_permissions in share row exclusive mode;
  perform outbox_add(rp.workspace_id, 'role', rp.role_id) from role_permissions rp where rp.permission_id = new.id;
  perform outbox_add(kp.workspace_id, 'keyId', kp.key_id) from key_permissions kp where kp.permission_id = new.id;
  return null;
end $$;

-- The records of an API's keys name its key space. No key is made meanwhile: that would wait for this row.
create function outbox_key_spaces() returns trigger language plpgsql as $$
begin
  perform outbox_add(k.workspace_id, 'keyId', k.id) from keys k where k.api_id = new.id;
  return null;
end $$;
create trigger outbox_key_space after update of key_space_id on apis
  for each row when (old.key_space_id <> new.key_space_id) execute function outbox_key_spaces();

create function outbox_truncated() returns trigger language plpgsql as $$
begin
  perform outbox_add('*', 'everything', tg_table_name);
  return null;
end $$;
do $$
declare
  emptied text;
begin
  foreach emptied in array array['workspaces', 'root_keys', 'apis', 'identities', 'keys', 'key_credits', 'ratelimits', 'permissions',
                                 'roles', 'role_permissions', 'key_permissions', 'key_roles', 'ratelimit_namespaces',
                                 'ratelimit_overrides', 'policies']
  loop
    execute format('create trigger outbox_truncated after truncate on %I execute function outbox_truncated()', emptied);
  end loop;
end $$;
