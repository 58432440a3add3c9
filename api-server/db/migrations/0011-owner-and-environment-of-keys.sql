-- What the v1 API keeps of a key beside what v2 does. `owner_id` is the text under which the owner was given; the identity that the
-- key is linked to can be deleted, and then this is still answered. `environment` is a text without any effect. `last_refill_at` is
-- when credits were last added, or when the refill was set; null for a key whose refill is older than this column.
--
-- No index is made here: owner_id is null in every row, and the file that makes the index runs concurrently.
alter table keys
  add column owner_id text,
  add column environment text,
  add column last_refill_at bigint;

-- The api-server answers with the two texts, so its cache must hear of them. Pods are not sent them.
create or replace trigger outbox_update
  after update of id, workspace_id, api_id, hash, name, identity_id, meta, enabled, expires_at, deleted_at, owner_id, environment
  on keys for each row execute function outbox_keys();
