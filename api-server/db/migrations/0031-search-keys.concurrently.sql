-- Keys are listed with the newest first, of one API and of all, and searched by the beginning of their name and of what they start with.
-- No trigrams: pg_trgm is not installed everywhere, and a part of a name is looked for within one API alone (api-v2.md section 24.4).
create index concurrently keys_newest_of_api on keys (api_id, created_at, id) where deleted_at is null;
create index concurrently keys_newest on keys (workspace_id, created_at, id) where deleted_at is null;
create index concurrently keys_by_name on keys (workspace_id, lower(name) text_pattern_ops) where deleted_at is null and name is not null;
create index concurrently keys_by_start on keys (workspace_id, start text_pattern_ops) where deleted_at is null;
