-- `apis.listKeys` and `keys.getVerifications` of the v1 API ask for the keys of an owner.
create index concurrently keys_by_owner on keys (workspace_id, owner_id, id) where owner_id is not null;
