-- Keys that `migrations.enqueueKeys` of the v1 API has accepted and that do not exist yet. Each has a row, which is removed in the
-- transaction that creates the key. No row has a plaintext: `ciphertext` is what `key_secrets` will have, and null where the API does
-- not keep recoverable keys.
create table queued_keys (
  -- The id that the key will have: the encrypted string is bound to it.
  key_id            text primary key,
  workspace_id      text not null references workspaces (id),
  -- Not a foreign key: the row of a deleted API may be removed while a key waits for it.
  api_id            text not null,
  -- As the caller named it, and which key of the call it is, from 0: for the log.
  migration_id      text not null,
  position          smallint not null,
  hash              text not null,
  -- What the key will be, but for its secret and its API.
  definition        jsonb not null,
  encryption_key_id text,
  nonce             bytea check (octet_length(nonce) = 12),
  ciphertext        bytea check (octet_length(ciphertext) > 16),
  -- Who asked for it and by which request, as the audit log will say.
  asked             jsonb not null,
  enqueued_at       bigint not null,
  -- How often it could not be created.
  failures          smallint not null default 0,
  -- The next try is not before this.
  due_at            bigint not null,
  check ((encryption_key_id is null) = (ciphertext is null) and (nonce is null) = (ciphertext is null))
);
-- The next key of a workspace, which workspaces have any, and how many one has.
create index queued_keys_by_due on queued_keys (workspace_id, due_at, position, key_id);
-- The oldest one.
create index queued_keys_by_age on queued_keys (enqueued_at);
