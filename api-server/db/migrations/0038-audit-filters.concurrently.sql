-- Each filter of the audit log finds its newest rows by an index, also where other rows are ten million.
create index concurrently audit_log_by_event on audit_log (workspace_id, event, time desc, id);
create index concurrently audit_log_by_actor on audit_log (workspace_id, (actor ->> 'id'), time desc, id);
create index concurrently audit_log_by_request on audit_log (workspace_id, request_id) where request_id is not null;
-- Only the ids: an index over the whole targets would be three times as large.
create index concurrently audit_log_by_target on audit_log using gin (jsonb_path_query_array(targets, '$[*].id') jsonb_path_ops);
