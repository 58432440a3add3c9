-- The id of a managed policy follows from its workspace and manager (core/policies/policy-id.ts), so that a gate finds it by the
-- manifest's name. Policies that have another id get that one. The one before stays readable, and is projected beside it: sidecars
-- that were started with it go on, and can be started again.
alter table policies add column former_id text;

create function outbox_policies() returns trigger language plpgsql as $$
begin
  -- OLD is null for an insert, NEW for a delete.
  perform outbox_add(marked.workspace_id, 'policy', marked.id)
     from (select distinct named.workspace_id, named.id
             from (values (old.workspace_id, old.id), (old.workspace_id, old.former_id),
                          (new.workspace_id, new.id), (new.workspace_id, new.former_id)) as named (workspace_id, id)
            where named.id is not null) as marked;
  return null;
end $$;
drop trigger outbox on policies;

-- Without the trigger, which would mark the former ids too: a relay of the release before may still run, does not know them, and would
-- tell the pods that these policies are gone. Deleted policies keep their ids, because a live one may have the same manager.
with named as (
  update policies
     set former_id = id,
         id = 'pol_' || left(encode(sha256(convert_to(workspace_id || E'\n' || manager, 'UTF8')), 'hex'), 32)
   where manager is not null
     and deleted_at is null
     and id <> 'pol_' || left(encode(sha256(convert_to(workspace_id || E'\n' || manager, 'UTF8')), 'hex'), 32)
  returning workspace_id, id
)
select outbox_add(workspace_id, 'policy', id) from named;

create trigger outbox after insert or update or delete on policies for each row execute function outbox_policies();
