-- All instants are Unix milliseconds (bigint): they are what the API speaks, and they survive JSON and JavaScript unchanged.
-- Every table names its workspace first in its indexes, so that it can be distributed by workspace (Citus) as it stands.

create table workspaces (
  id               text primary key,
  name             text not null unique,
  enabled          boolean not null default true,
  quota_per_minute bigint,
  created_at       bigint not null,
  deleted_at       bigint
);

-- Root keys are no API keys: they live in a table of their own, and are never projected to the pods.
create table root_keys (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  hash         text not null unique,
  start        text not null,
  name         text,
  permissions  text[] not null,
  enabled      boolean not null default true,
  expires_at   bigint,
  created_at   bigint not null,
  deleted_at   bigint
);
create index root_keys_by_workspace on root_keys (workspace_id, id);

create table apis (
  id                  text primary key,
  workspace_id        text not null references workspaces (id),
  key_space_id        text not null unique,
  name                text not null,
  delete_protection   boolean not null default false,
  ip_allow_list       text[] not null default '{}',
  default_prefix      text,
  default_byte_length integer,
  key_encryption      boolean not null default false,
  manager             text,
  created_at          bigint not null,
  updated_at          bigint,
  deleted_at          bigint
);
create index apis_by_workspace on apis (workspace_id, id);
create unique index apis_manager on apis (workspace_id, manager) where manager is not null and deleted_at is null;

create table identities (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  external_id  text not null,
  meta         jsonb,
  created_at   bigint not null,
  updated_at   bigint,
  deleted_at   bigint
);
create index identities_by_workspace on identities (workspace_id, id);
create unique index identities_external_id on identities (workspace_id, external_id) where deleted_at is null;

create table keys (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  api_id       text not null references apis (id),
  -- Base64 SHA-256 of the whole key string. The key itself is never stored.
  hash         text not null unique,
  start        text not null,
  name         text,
  identity_id  text references identities (id),
  meta         jsonb,
  enabled      boolean not null default true,
  expires_at   bigint,
  last_used_at bigint,
  manager      text,
  created_at   bigint not null,
  updated_at   bigint,
  deleted_at   bigint
);
create index keys_by_api on keys (api_id, id) where deleted_at is null;
create index keys_by_identity on keys (identity_id, id) where identity_id is not null;
create unique index keys_manager on keys (workspace_id, manager, name) where manager is not null and deleted_at is null;

-- A key without a row here is unlimited. remaining = granted - spent. `rev` grows with every change of the number, so that
-- the shared counter knows whether what it holds is still the same grant. It comes from one sequence, so that it also grows
-- over a key that was unlimited in between.
create sequence credit_rev;
create table key_credits (
  key_id             text primary key references keys (id) on delete cascade,
  workspace_id       text not null,
  rev                bigint not null default nextval('credit_rev'),
  granted            bigint not null check (granted >= 0),
  spent              bigint not null default 0 check (spent >= 0),
  refill_amount      bigint,
  -- null with an amount: daily. 1 to 31: monthly.
  refill_day         smallint,
  last_refill_on     date,
  check (spent <= granted),
  check (refill_day is null or refill_amount is not null)
);
create index key_credits_by_refill on key_credits (last_refill_on, key_id) where refill_amount is not null;

create table ratelimits (
  id           text primary key,
  workspace_id text not null,
  key_id       text references keys (id) on delete cascade,
  identity_id  text references identities (id) on delete cascade,
  name         text not null,
  max_count    bigint not null,
  duration_ms  bigint not null,
  auto_apply   boolean not null,
  created_at   bigint not null,
  check ((key_id is null) <> (identity_id is null))
);
create unique index ratelimits_of_key on ratelimits (key_id, name) where key_id is not null;
create unique index ratelimits_of_identity on ratelimits (identity_id, name) where identity_id is not null;

create table permissions (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  slug         text not null,
  name         text not null,
  description  text,
  manager      text,
  created_at   bigint not null
);
create unique index permissions_slug on permissions (workspace_id, lower(slug));
create index permissions_by_workspace on permissions (workspace_id, id);
create unique index permissions_manager on permissions (workspace_id, manager) where manager is not null;

create table roles (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  name         text not null,
  description  text,
  manager      text,
  created_at   bigint not null
);
create unique index roles_name on roles (workspace_id, lower(name));
create index roles_by_workspace on roles (workspace_id, id);
create unique index roles_manager on roles (workspace_id, manager) where manager is not null;

create table role_permissions (
  role_id       text not null references roles (id) on delete cascade,
  permission_id text not null references permissions (id) on delete cascade,
  workspace_id  text not null,
  primary key (role_id, permission_id)
);
create index role_permissions_by_permission on role_permissions (permission_id);

create table key_permissions (
  key_id        text not null references keys (id) on delete cascade,
  permission_id text not null references permissions (id) on delete cascade,
  workspace_id  text not null,
  primary key (key_id, permission_id)
);
create index key_permissions_by_permission on key_permissions (permission_id);

create table key_roles (
  key_id       text not null references keys (id) on delete cascade,
  role_id      text not null references roles (id) on delete cascade,
  workspace_id text not null,
  primary key (key_id, role_id)
);
create index key_roles_by_role on key_roles (role_id);

create table ratelimit_namespaces (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  name         text not null,
  manager      text,
  created_at   bigint not null,
  deleted_at   bigint
);
create unique index ratelimit_namespaces_name on ratelimit_namespaces (workspace_id, name) where deleted_at is null;
create index ratelimit_namespaces_by_name on ratelimit_namespaces (workspace_id, name, created_at);
create index ratelimit_namespaces_by_workspace on ratelimit_namespaces (workspace_id, id);
create unique index ratelimit_namespaces_manager on ratelimit_namespaces (workspace_id, manager)
  where manager is not null and deleted_at is null;

create table ratelimit_overrides (
  id           text primary key,
  workspace_id text not null,
  namespace_id text not null references ratelimit_namespaces (id),
  identifier   text not null,
  max_count    bigint not null,
  duration_ms  bigint not null,
  async        boolean not null default false,
  manager      text,
  created_at   bigint not null,
  updated_at   bigint,
  deleted_at   bigint
);
create unique index ratelimit_overrides_identifier on ratelimit_overrides (namespace_id, identifier) where deleted_at is null;
create index ratelimit_overrides_by_namespace on ratelimit_overrides (namespace_id, id) where deleted_at is null;
create unique index ratelimit_overrides_manager on ratelimit_overrides (workspace_id, manager)
  where manager is not null and deleted_at is null;

create table policies (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  api_id       text not null references apis (id),
  name         text not null,
  uid          text not null,
  generation   bigint not null,
  version      bigint not null default 1,
  policy       jsonb not null,
  manager      text,
  created_at   bigint not null,
  updated_at   bigint,
  deleted_at   bigint
);
create unique index policies_name on policies (api_id, name) where deleted_at is null;
create index policies_by_workspace on policies (workspace_id, id) where deleted_at is null;
create unique index policies_manager on policies (workspace_id, manager) where manager is not null and deleted_at is null;

create table audit_log (
  id             text not null,
  workspace_id   text not null,
  time           bigint not null,
  event          text not null,
  description    text not null,
  actor          jsonb not null,
  remote_ip      text,
  user_agent     text,
  targets        jsonb not null,
  correlation_id text,
  request_id     text,
  primary key (id)
);
create index audit_log_by_time on audit_log (workspace_id, time desc, id);

-- What the running system remembers of itself, such as the projection in force.
create table settings (
  name  text primary key,
  value jsonb not null
);

-- Usage events, one partition a day, so that retention drops whole partitions. `day` is the UTC date of `time`.
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
  region        text not null default '',
  spent_credits bigint not null default 0,
  latency_ms    double precision not null default 0,
  primary key (day, id)
) partition by range (day);
create index verification_events_by_time on verification_events (workspace_id, time);

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
  primary key (day, id)
) partition by range (day);
create index ratelimit_events_by_time on ratelimit_events (workspace_id, time);

-- The outbox: which records are to be projected anew. State-based: a row says that something changed, never what. It is
-- deliberately not unique per record: two transactions that touch one record must each leave their mark, or the one that
-- commits later would lose its own. `tx` lets the writing transaction list its own marks before it commits.
create table outbox (
  seq          bigint generated always as identity primary key,
  workspace_id text not null,
  kind         text not null,
  id           text not null,
  tx           xid8 not null default pg_current_xact_id()
);
create index outbox_by_tx on outbox (tx);

create sequence projection_version;

create function outbox_add(workspace_id text, kind text, id text) returns void language sql as $$
  insert into outbox (workspace_id, kind, id) values ($1, $2, $3);
  -- Equal notifications of one transaction reach a listener once.
  select pg_notify('postern_outbox', '');
$$;

-- A key is projected by its hash. A re-hashed key leaves a mark for both hashes, so that the old one gets its tombstone.
create function outbox_keys() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform outbox_add(old.workspace_id, 'key', old.hash);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.hash <> old.hash) then
    perform outbox_add(new.workspace_id, 'key', new.hash);
  end if;
  return null;
end $$;
create trigger outbox_insert_delete after insert or delete on keys for each row execute function outbox_keys();
-- Being used does not change what the pods need to know.
create trigger outbox_update after update of id, workspace_id, api_id, hash, name, identity_id, meta, enabled, expires_at, deleted_at
  on keys for each row execute function outbox_keys();

-- Rows that belong to a key: permissions, roles, credits (whether there are any, not how many).
create function outbox_key_parts() returns trigger language plpgsql as $$
declare
  part record;
begin
  if tg_op = 'DELETE' then part := old; else part := new; end if;
  perform outbox_add(k.workspace_id, 'key', k.hash) from keys k where k.id = part.key_id;
  if tg_op = 'UPDATE' and old.key_id <> new.key_id then
    perform outbox_add(k.workspace_id, 'key', k.hash) from keys k where k.id = old.key_id;
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
    end if;
    perform outbox_add(k.workspace_id, 'key', k.hash) from keys k where k.id = old.key_id;
  end if;
  if tg_op <> 'DELETE' then
    if new.identity_id is not null then
      perform outbox_add(new.workspace_id, 'identity', new.identity_id);
    end if;
    perform outbox_add(k.workspace_id, 'key', k.hash) from keys k where k.id = new.key_id;
  end if;
  return null;
end $$;
create trigger outbox after insert or update or delete on ratelimits for each row execute function outbox_ratelimits();

-- Entities that are projected under their own id; the trigger's argument is the kind of the record.
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
create trigger outbox after insert or update or delete on policies for each row execute function outbox_entity('policy');

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

-- An identifier with a star is a pattern; all patterns of a namespace are one record, an exact identifier is one by itself.
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

-- Records hold the slugs of permissions. No procedure changes a slug; whoever does so in psql is to be heard all the same.
create function outbox_permissions() returns trigger language plpgsql as $$
begin
  perform outbox_add(rp.workspace_id, 'role', rp.role_id) from role_permissions rp where rp.permission_id = new.id;
  perform outbox_add(k.workspace_id, 'key', k.hash)
     from key_permissions kp
     join keys k on k.id = kp.key_id
    where kp.permission_id = new.id;
  return null;
end $$;
create trigger outbox after update of slug on permissions for each row execute function outbox_permissions();
