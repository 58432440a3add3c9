import type { Queryable } from "../../store/queryable.ts";

/** Events of one workspace, one line of JSON each. */
export interface WrittenEvents {
  readonly workspaceId: string;
  readonly lines: string;
  /** Unix ms; events outside of this range are left out. */
  readonly afterMs: number;
  readonly beforeMs: number;
}

/**
 * Stores events of both types, and the last use of their keys, to the minute. One statement takes the events as they were
 * written, so that the api-server, which also serves requests, need not parse them one by one. Events of another workspace, or
 * without a number, are left out. A single event that is invalid in another way (not JSON, no valid day, a fraction in a count)
 * makes Postgres refuse the whole statement; the caller must then check each event. Events that are stored already are
 * not changed, and do not update the last use of a key.
 */
export async function insertEventLines(
  db: Queryable,
  { workspaceId, lines, afterMs, beforeMs }: WrittenEvents,
): Promise<void> {
  // $1 events, $2 workspace, $3 and $4 the time range. Rows of keys are locked in the order of their ids, to avoid deadlock.
  const text = `with e as materialized (
                  select (to_timestamp(e."timeMs" / 1000.0) at time zone 'UTC')::date as day, e.*
                    from jsonb_to_recordset($1::jsonb)
                         as e (type text, id text, "requestId" text, "timeMs" bigint, "workspaceId" text, "keySpaceId" text,
                               "apiId" text, "keyId" text, "identityId" text, "externalId" text, outcome text, tags text[],
                               source text, region text, "spentCredits" bigint, "latencyMs" double precision,
                               "namespaceId" text, identifier text, passed boolean, "overrideId" text, "limit" bigint,
                               remaining bigint, "resetMs" bigint, cost bigint)
                   where "workspaceId" = $2 and "timeMs" > $3 and "timeMs" < $4 and "latencyMs" >= 0
                     and length(id) between 1 and 256
                ), fresh as (
                  insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id,
                                                   identity_id, external_id, outcome, tags, source, region, spent_credits,
                                                   latency_ms)
                  select day, id, "requestId", "timeMs", "workspaceId", "keySpaceId", "apiId", "keyId",
                         coalesce("identityId", ''), coalesce("externalId", ''), outcome, tags, source, region,
                         "spentCredits", "latencyMs"
                    from e
                   where type = 'verification' and source in ('api', 'sidecar') and "spentCredits" >= 0
                      on conflict (day, id) do nothing
                  returning key_id, time
                ), limited as (
                  insert into ratelimit_events (day, id, request_id, time, workspace_id, namespace_id, identifier, passed,
                                                latency_ms, override_id, max_count, remaining, reset_at, cost)
                  select day, id, "requestId", "timeMs", "workspaceId", "namespaceId", identifier, passed, "latencyMs",
                         coalesce("overrideId", ''), "limit", remaining, "resetMs", cost
                    from e
                   where type = 'ratelimit' and "limit" >= 0 and remaining >= 0 and "resetMs" >= 0 and cost >= 0
                      on conflict (day, id) do nothing
                ), used as (
                  select key_id, max(time - time % 60000) as last_used_at from fresh group by key_id
                ), locked as materialized (
                  select k.id, used.last_used_at
                    from used
                    join keys k on k.workspace_id = $2 and k.id = used.key_id
                   where k.last_used_at is distinct from greatest(k.last_used_at, used.last_used_at)
                   order by k.id
                     for no key update of k
                )
                update keys k
                   set last_used_at = greatest(k.last_used_at, locked.last_used_at)
                  from locked
                 where k.id = locked.id`;
  const json = `[${lines.replaceAll("\n", ",")}]`;
  await db.query({ name: "insert-event-lines", text, values: [json, workspaceId, afterMs, beforeMs] });
}
