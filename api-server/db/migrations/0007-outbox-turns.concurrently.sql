-- Each workspace has its turn: a round takes the oldest marks of each, and finds them by one step through this index.
create index concurrently outbox_by_turn on outbox (bulk, workspace_id, seq);
