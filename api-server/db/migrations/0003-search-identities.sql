-- Searching for part of an external id would read a whole workspace, which may have a hundred million identities. Trigrams
-- find such parts by an index. They come with pg_trgm, which is shipped with Postgres but not installed everywhere, and not
-- everybody may install it: without it, searching is slow and given up by a time limit, and all else is as with it
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
    raise notice 'pg_trgm may not be installed by this role';
  end;
  -- It may have been installed before, into a schema of its own.
  select n.nspname into home from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm';
  if home is null then
    raise notice 'without pg_trgm, searching in many identities is slow';
  else
    execute format('create index identities_search on identities using gin (id %1$I.gin_trgm_ops, external_id %1$I.gin_trgm_ops)
                      where deleted_at is null', home);
  end if;
end $$;
