-- Timestamps are Unix milliseconds (bigint), as in the API, so that JSON and JavaScript keep them exactly.
-- Indexes begin with the workspace where they can, so that tables can be distributed by workspace (Citus).

create table workspaces (
  id               text primary key,
  name             text not null unique,
  enabled          boolean not null default true,
  quota_per_minute bigint,
  created_at       bigint not null,
  deleted_at       bigint
);

-- State of the running system, such as the active projection.
create table settings (
  name  text primary key,
  value jsonb not null
);

-- Root keys are not API keys: they have their own table and are never projected to pods.
create table root_keys (
  id                     text primary key,
  workspace_id           text not null references workspaces (id),
  hash                   text not null unique,
  start                  text not null,
  name                   text,
  -- Label for people, such as production.
  environment            text,
  permissions            text[] not null,
  -- null: since the root key was created. Distinguishes an unused permission from a new one.
  permissions_changed_at bigint,
  enabled                boolean not null default true,
  -- A rotation links both root keys. Without a foreign key, because root keys are never removed.
  predecessor_id         text,
  successor_id           text,
  -- Increases with each update, so that an update based on an older revision is rejected.
  revision               integer not null default 1,
  expires_at             bigint,
  created_at             bigint not null,
  deleted_at             bigint
);
create index root_keys_by_workspace on root_keys (workspace_id, id);

-- Separate from root_keys, because a change of a root_keys row makes every api-server read that root key again.
create table root_key_v1_usage (
  root_key_id  text primary key references root_keys (id),
  workspace_id text not null references workspaces (id),
  last_used_on date not null
);

-- Permissions that root keys used. Separate from root_keys for the same reason.
create table root_key_usage (
  root_key_id  text not null references root_keys (id),
  -- Permission tuple of the root key; '' stands for any call.
  tuple        text not null,
  workspace_id text not null references workspaces (id),
  last_used_on date not null,
  -- For a tuple with *: the requested id, while all requests had the same one.
  only_id      text,
  primary key (root_key_id, tuple)
);
create index root_key_usage_by_workspace on root_key_usage (workspace_id, last_used_on);

-- Start of the records in root_key_usage, Unix ms.
insert into settings (name, value) values ('root-key-usage-since', to_jsonb(floor(extract(epoch from now()) * 1000)));

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
create index identities_deleted on identities (workspace_id, deleted_at) where deleted_at is not null;

-- A search for a part of an external id would read the whole workspace, which may have 10^8 identities. Trigrams find parts by an index.
-- pg_trgm is not installed everywhere, and not every role may install it. Without it, such a search is slow and ends at a time limit
-- (docs/decisions/0010-search-by-trigrams.md).
do $$
declare
  home text;
begin
  begin
    if exists (select from pg_available_extensions where name = 'pg_trgm') then
      create extension if not exists pg_trgm;
    end if;
  exception when insufficient_privilege then
    raise notice 'this role may not install pg_trgm';
  end;
  -- The extension may already be installed in another schema.
  select n.nspname into home from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm';
  if home is null then
    raise notice 'without pg_trgm, a search in many identities is slow';
  else
    execute format('create index identities_search on identities using gin (id %1$I.gin_trgm_ops, external_id %1$I.gin_trgm_ops)
                      where deleted_at is null', home);
  end if;
end $$;

-- Imported keys refer to a migration, which defines the algorithm of their hashes.
create table migrations (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  name         text not null,
  algorithm    text not null check (algorithm in ('sha256', 'prefixed')),
  created_at   bigint not null
);
create index migrations_by_workspace on migrations (workspace_id, id);

create table keys (
  id                   text primary key,
  workspace_id         text not null references workspaces (id),
  api_id               text not null references apis (id),
  -- Base64 SHA-256 of the whole key string. The key itself is never stored.
  hash                 text not null unique,
  start                text not null,
  name                 text,
  identity_id          text references identities (id),
  meta                 jsonb,
  enabled              boolean not null default true,
  expires_at           bigint,
  last_used_at         bigint,
  manager              text,
  -- Set while `hash` is the imported one. Pods do not need it: a statement that clears it also changes `hash`, which has a trigger.
  pending_migration_id text references migrations (id),
  -- Members that only the v1 API has. The owner remains when the identity of the key is deleted. `environment` has no effect.
  owner_id             text,
  environment          text,
  -- Time of the last refill, or the time at which the refill was set.
  last_refill_at       bigint,
  created_at           bigint not null,
  updated_at           bigint,
  deleted_at           bigint
);
create index keys_by_api on keys (api_id, id) where deleted_at is null;
create index keys_by_identity on keys (identity_id, id) where identity_id is not null;
create index keys_by_owner on keys (workspace_id, owner_id, id) where owner_id is not null;
create index keys_by_pending_migration on keys (pending_migration_id) where pending_migration_id is not null;
-- The name distinguishes the keys of a manager; a key without a name counts as ''. Two nulls would not conflict in a unique index.
create unique index keys_manager on keys (workspace_id, manager, coalesce(name, ''))
  where manager is not null and deleted_at is null;
-- Lists are sorted by creation time, for one API and for all, and searched by the start of the name or of the key. A part of a name is
-- searched within one API only, because pg_trgm is not installed everywhere (api-v2.md section 24.4).
create index keys_newest_of_api on keys (api_id, created_at, id) where deleted_at is null;
create index keys_newest on keys (workspace_id, created_at, id) where deleted_at is null;
create index keys_by_name on keys (workspace_id, lower(name) text_pattern_ops) where deleted_at is null and name is not null;
create index keys_by_start on keys (workspace_id, start text_pattern_ops) where deleted_at is null;
-- Disabled and expired keys are rare, so that a search for them would read most keys.
create index keys_disabled on keys (workspace_id, created_at, id) where deleted_at is null and not enabled;
create index keys_by_expiry on keys (workspace_id, expires_at, id) where deleted_at is null and expires_at is not null;
-- For the removal of rows that were deleted long ago, and for the check whether an API still has rows.
create index keys_deleted on keys (workspace_id, deleted_at) where deleted_at is not null;
create index keys_of_api on keys (api_id);
-- The planner has no statistics on the expression of a partial index. Without these it expects that every name prefix matches one key in
-- 200, and reads all keys for a rare one.
create statistics keys_names on (lower(name)) from keys;

-- Encrypted strings of recoverable keys (docs/decisions/0008-encrypted-key-strings.md). Separate from keys, so that no other statement
-- reads them. The last 16 bytes of `ciphertext` are its authentication tag.
create table key_secrets (
  key_id            text primary key references keys (id) on delete cascade,
  workspace_id      text not null references workspaces (id),
  encryption_key_id text not null,
  nonce             bytea not null check (octet_length(nonce) = 12),
  ciphertext        bytea not null check (octet_length(ciphertext) > 16),
  created_at        bigint not null
);
-- For the rotation of encryption keys: finds secrets that an old key encrypts.
create index key_secrets_by_encryption_key on key_secrets (encryption_key_id, key_id);

-- A key without a row is unlimited. remaining = granted - spent. Each change of the number increases `rev`, so that the shared counter
-- detects an outdated grant. All revisions come from one sequence, so that `rev` also increases when a key was unlimited in between.
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

-- Keys that `migrations.enqueueKeys` of the v1 API has accepted but not yet created. The transaction that creates the key deletes its row.
-- No row contains a plaintext key: `ciphertext` becomes the one of key_secrets; null if the API has no recoverable keys.
create table queued_keys (
  -- Id of the future key: the encrypted string is bound to it.
  key_id            text primary key,
  workspace_id      text not null references workspaces (id),
  -- Without a foreign key: the row of a deleted API may be removed while a key waits.
  api_id            text not null,
  -- Migration as named by the caller, and position in the request, from 0. Both are logged.
  migration_id      text not null,
  position          smallint not null,
  hash              text not null,
  -- The key without its secret and its API.
  definition        jsonb not null,
  encryption_key_id text,
  nonce             bytea check (octet_length(nonce) = 12),
  ciphertext        bytea check (octet_length(ciphertext) > 16),
  -- Caller and request, for the audit log.
  requested_by      jsonb not null,
  enqueued_at       bigint not null,
  failures          smallint not null default 0,
  -- Earliest time of the next attempt.
  due_at            bigint not null,
  check ((encryption_key_id is null) = (ciphertext is null) and (nonce is null) = (ciphertext is null))
);
create index queued_keys_by_due on queued_keys (workspace_id, due_at, position, key_id);
create index queued_keys_by_age on queued_keys (enqueued_at);

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
-- A limit call without an override of its identifier reads the patterns of its namespace: a few among up to a million overrides.
create index ratelimit_overrides_patterns on ratelimit_overrides (namespace_id, id)
  where deleted_at is null and position('*' in identifier) > 0;
create index ratelimit_overrides_deleted on ratelimit_overrides (workspace_id, deleted_at) where deleted_at is not null;
-- For the check whether any override, deleted or not, still refers to a namespace.
create index ratelimit_overrides_of_namespace on ratelimit_overrides (namespace_id);

-- The id of a managed policy is derived from its workspace and manager (core/policies/policy-id.ts), so that a gate finds it by the name of
-- the manifest. An adopted policy gets the derived id and stays readable under its former one, which running gates use.
create table policies (
  id           text primary key,
  former_id    text,
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
create index policies_of_api on policies (api_id);

-- Last manager of objects whose manifest was deleted while the object stayed. The object itself has no manager. The same manifest finds the
-- object again, and another manifest takes it only by adoption. A row has no effect once its object is deleted or has a manager.
create table orphaned_objects (
  workspace_id text not null references workspaces (id),
  kind         text not null,
  -- Without a foreign key: each kind has its own table.
  object_id    text not null,
  last_manager text not null,
  released_at  bigint not null,
  primary key (workspace_id, kind, object_id)
);
create index orphaned_objects_by_manager on orphaned_objects (workspace_id, last_manager, kind, released_at);

-- Highest fencing number of each cluster's operator. A call with a lower number comes from an operator that no longer leads.
create table operator_fences (
  workspace_id text not null references workspaces (id),
  -- First part of the managers.
  cluster      text not null,
  fence        integer not null,
  primary key (workspace_id, cluster)
);

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
  -- Changed fields before and after the change (api-server/db/audit-change.ts).
  before         jsonb,
  after          jsonb,
  correlation_id text,
  request_id     text,
  primary key (id)
);
-- Each filter of the audit log finds its newest rows by an index, also among 10^7 rows of others.
create index audit_log_by_time on audit_log (workspace_id, time desc, id);
create index audit_log_by_event on audit_log (workspace_id, event, time desc, id);
create index audit_log_by_actor on audit_log (workspace_id, (actor ->> 'id'), time desc, id);
create index audit_log_by_request on audit_log (workspace_id, request_id) where request_id is not null;
-- Only the ids: an index over complete targets would be three times as large.
create index audit_log_by_target on audit_log using gin (jsonb_path_query_array(targets, '$[*].id') jsonb_path_ops);
