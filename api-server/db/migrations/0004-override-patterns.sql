-- A limit call whose identifier has no override of its own asks for the patterns of its namespace, which may have a million
-- overrides and a handful of patterns: without this, all of them are read to find the few.
create index ratelimit_overrides_patterns on ratelimit_overrides (namespace_id, id)
  where deleted_at is null and position('*' in identifier) > 0;
