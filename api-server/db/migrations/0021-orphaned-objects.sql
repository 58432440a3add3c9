-- Who managed an object that a manifest left in the store. The object itself has no manager any more; this remembers the last one, so that
-- the same manifest finds it again and no other takes it without leave. A row counts only while its object lives and has no manager.
-- A table of its own, because the kinds have tables of their own, and a migration takes a lock on no more than one of them.
create table orphaned_objects (
  workspace_id text not null references workspaces (id),
  kind         text not null,
  -- Not a foreign key: it is of another table for each kind.
  object_id    text not null,
  last_manager text not null,
  released_at  bigint not null,
  primary key (workspace_id, kind, object_id)
);
create index orphaned_objects_by_manager on orphaned_objects (workspace_id, last_manager, kind, released_at);
