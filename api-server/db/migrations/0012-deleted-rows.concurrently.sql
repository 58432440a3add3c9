-- What was deleted long ago is removed in batches: found by these, and not by going through all that lives.
create index concurrently keys_deleted on keys (workspace_id, deleted_at) where deleted_at is not null;
create index concurrently identities_deleted on identities (workspace_id, deleted_at) where deleted_at is not null;
create index concurrently ratelimit_overrides_deleted on ratelimit_overrides (workspace_id, deleted_at)
  where deleted_at is not null;
-- An override names its namespace also when it is deleted: whether any still does is asked before a namespace goes.
create index concurrently ratelimit_overrides_of_namespace on ratelimit_overrides (namespace_id);
-- The same of keys and policies that name an API.
create index concurrently keys_of_api on keys (api_id);
create index concurrently policies_of_api on policies (api_id);
