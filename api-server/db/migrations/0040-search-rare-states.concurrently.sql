-- Disabled and expired keys are few among many, or none: without these each key is looked at to find that out (api-v2.md section 24.4).
create index concurrently keys_disabled on keys (workspace_id, created_at, id) where deleted_at is null and not enabled;
create index concurrently keys_by_expiry on keys (workspace_id, expires_at) where deleted_at is null and expires_at is not null;
