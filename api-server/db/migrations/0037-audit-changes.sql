-- What a change did: the fields that it changed, before and after (store/audit-change.ts). Rows of earlier releases have none.
alter table audit_log add column before jsonb, add column after jsonb;
