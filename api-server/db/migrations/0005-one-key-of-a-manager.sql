-- A manager's keys are told apart by their names, and a key without a name is told apart as well: names that are null would
-- all differ to a unique index, so that two such keys could be made at once. No name is the empty text. Should that have
-- happened, the older key stays the manager's.
update keys k
   set manager = null
 where k.manager is not null and k.name is null and k.deleted_at is null
   and exists (select from keys older
                where older.workspace_id = k.workspace_id and older.manager = k.manager and older.name is null
                  and older.deleted_at is null
                  and (older.created_at, older.id) < (k.created_at, k.id));
drop index keys_manager;
create unique index keys_manager on keys (workspace_id, manager, coalesce(name, ''))
  where manager is not null and deleted_at is null;
