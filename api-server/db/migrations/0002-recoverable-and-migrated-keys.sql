-- Keys that were issued elsewhere are imported under a migration, which says how their hashes were made.
create table migrations (
  id           text primary key,
  workspace_id text not null references workspaces (id),
  name         text not null,
  algorithm    text not null check (algorithm in ('sha256', 'prefixed')),
  created_at   bigint not null
);
create index migrations_by_workspace on migrations (workspace_id, id);

-- Set while `hash` is as the migration brought it. The pods need not know: whoever makes it null rewrites `hash` in the same
-- statement, which the outbox hears.
alter table keys add column pending_migration_id text references migrations (id);
create index keys_by_pending_migration on keys (pending_migration_id) where pending_migration_id is not null;

-- The strings of recoverable keys, encrypted (docs/decisions/0008-encrypted-key-strings.md); a table of its own, so that
-- nothing reads them by the way. `ciphertext` ends in the 16 bytes of its tag.
create table key_secrets (
  key_id            text primary key references keys (id) on delete cascade,
  workspace_id      text not null references workspaces (id),
  encryption_key_id text not null,
  nonce             bytea not null check (octet_length(nonce) = 12),
  ciphertext        bytea not null check (octet_length(ciphertext) > 16),
  created_at        bigint not null
);
-- For the rotation of encryption keys: what an old one still encrypts.
create index key_secrets_by_encryption_key on key_secrets (encryption_key_id, key_id);
