import type { Queryable } from "../../postgres/queryable.ts";
import type { AcceptedTimes } from "../accepted-events.ts";

/** Events of one workspace as JSON lines. */
export interface WrittenEvents extends AcceptedTimes {
  readonly workspaceId: string;
  readonly lines: string;
}

export interface InsertedLines {
  readonly lines: number;
  /** Number of new events, without duplicates of stored events. */
  readonly stored: number;
  readonly late: number;
  /** Number of valid events within the accepted time range, including duplicates. */
  readonly accepted: number;
}

/** Maximum count, `Number.MAX_SAFE_INTEGER`. Sums stop at this value: an overflow would block the roll-up. */
export const COUNT_MAX = 9_007_199_254_740_991;

/**
 * Stores verification and rate-limit events, queues the number of new events per minute for the roll-ups, and records the last use of their
 * keys to the minute. A single statement parses the JSON lines in Postgres, which saves CPU time in this process, because it also serves
 * requests. Invalid events are skipped. If a line is not a JSON object or has a member of a wrong type, Postgres rejects the complete
 * statement, and the caller must clean each event. Duplicates of stored events are neither updated nor counted.
 */
export async function insertEventLines(
  db: Queryable,
  { workspaceId, lines, afterMs, beforeMs }: WrittenEvents,
): Promise<InsertedLines> {
  const json = `[${lines.replaceAll("\n", ",")}]`;
  const query = { name: "insert-event-lines", text: INSERT, values: [json, workspaceId, afterMs, beforeMs] };
  const [inserted] = (await db.query<InsertedLines>(query)).rows;
  if (inserted === undefined) throw new Error("the statement returned no row");
  return inserted;
}

/*
 * Statement that stores events. Parameters: $1 events, $2 workspace, $3 and $4 the accepted time range. Indexed columns have a length limit.
 * Events are inserted in the order of the primary key, and rows of keys are locked in the order of key ids, so that concurrent statements do
 * not deadlock.
 */
const INSERT = `
  with e as materialized (
    select e.*,
           case when num_nulls(id, "requestId", "timeMs") > 0 or "workspaceId" is distinct from $2
                  or not (length(id) between 1 and 256 and "latencyMs" >= 0) then null
                when type = 'verification'
                 and num_nulls("keySpaceId", "apiId", "keyId", outcome, region) = 0 and source in ('api', 'sidecar')
                 and "spentCredits" between 0 and ${COUNT_MAX}
                 and length("keySpaceId") <= 256 and length("keyId") <= 256 and length(outcome) <= 64
                 and (tags = '{}' or array_ndims(tags) = 1 and array_position(tags, null) is null)
                then 'verification'
                when type = 'ratelimit'
                 and num_nulls("namespaceId", identifier, passed) = 0 and "limit" between 0 and ${COUNT_MAX}
                 and remaining between 0 and ${COUNT_MAX} and "resetMs" between 0 and ${COUNT_MAX}
                 and cost between 0 and ${COUNT_MAX}
                then 'ratelimit'
           end as kind
      from jsonb_to_recordset($1::jsonb)
           as e (type text, id text, "requestId" text, "timeMs" bigint, "workspaceId" text, "keySpaceId" text, "apiId" text,
                 "keyId" text, "identityId" text, "externalId" text, outcome text, tags text[], source text, "appId" text,
                 region text, "spentCredits" bigint, "latencyMs" double precision, "namespaceId" text, identifier text,
                 passed boolean, "overrideId" text, "limit" bigint, remaining bigint, "resetMs" bigint, cost bigint)
  ), verified as (
    insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id, identity_id,
                                     external_id, outcome, tags, source, app_id, region, spent_credits, latency_ms)
    select (to_timestamp("timeMs" / 1000.0) at time zone 'UTC')::date, id, "requestId", "timeMs", "workspaceId",
           "keySpaceId", "apiId", "keyId", coalesce("identityId", ''), coalesce("externalId", ''), outcome, tags, source,
           coalesce("appId", ''), region, "spentCredits", "latencyMs"
      from e
     where kind = 'verification' and "timeMs" > $3 and "timeMs" < $4
     order by e."timeMs", e.id
        on conflict (workspace_id, time, id, day) do nothing
    returning time, spent_credits, key_space_id, key_id, identity_id, external_id, outcome, source, app_id, tags
  ), verifications as materialized (
    select timestamp 'epoch' + v.time / 60000 * interval '1 minute' as time,
           least(sum(v.spent_credits), ${COUNT_MAX})::bigint as spent_credits, count(*) as count,
           v.key_space_id, v.key_id, v.identity_id, v.external_id, v.outcome, v.source, v.app_id,
           case when cardinality(v.tags) < 2 then v.tags
                else (select array_agg(t order by t collate "C") from unnest(v.tags) t) end as tags
      from verified v
     group by 1, 4, 5, 6, 7, 8, 9, 10, 11
  ), limited as (
    insert into ratelimit_events (day, id, request_id, time, workspace_id, namespace_id, identifier, passed, latency_ms,
                                  override_id, max_count, remaining, reset_at, cost)
    select (to_timestamp("timeMs" / 1000.0) at time zone 'UTC')::date, id, "requestId", "timeMs", "workspaceId",
           "namespaceId", identifier, passed, "latencyMs", coalesce("overrideId", ''), "limit", remaining, "resetMs", cost
      from e
     where kind = 'ratelimit' and "timeMs" > $3 and "timeMs" < $4
     order by e."timeMs", e.id
        on conflict (workspace_id, time, id, day) do nothing
    returning time, namespace_id, identifier, passed, cost
  ), ratelimits as materialized (
    select timestamp 'epoch' + l.time / 60000 * interval '1 minute' as time,
           count(*) filter (where l.passed) as passed, count(*) as total,
           least(coalesce(sum(l.cost) filter (where l.passed), 0), ${COUNT_MAX})::bigint as passed_tokens,
           least(sum(l.cost), ${COUNT_MAX})::bigint as total_tokens,
           l.namespace_id, l.identifier
      from limited l
     group by 1, 6, 7
  ), stored as materialized (
    select v.events + l.events as events, v.groups + l.groups as groups, v.list as verifications, l.list as ratelimits
      from (select coalesce(sum(count), 0) as events, count(*) as groups,
                   coalesce(array_agg(row(verifications.*)::verification_group), '{}') as list from verifications) v,
           (select coalesce(sum(total), 0) as events, count(*) as groups,
                   coalesce(array_agg(row(ratelimits.*)::ratelimit_group), '{}') as list from ratelimits) l
  ), queued as (
    insert into rollup_queue (workspace_id, events, groups, verifications, ratelimits)
    select $2, events, groups, verifications, ratelimits from stored where groups > 0
  ), used as (
    select key_id, (extract(epoch from max(time)) * 1000)::bigint as last_used_at from verifications group by key_id
  ), locked as materialized (
    select k.id, used.last_used_at
      from used
      join keys k on k.workspace_id = $2 and k.id = used.key_id
     where k.last_used_at is distinct from greatest(k.last_used_at, used.last_used_at)
     order by k.id
       for no key update of k
  ), noted as (
    update keys k
       set last_used_at = greatest(k.last_used_at, locked.last_used_at)
      from locked
     where k.id = locked.id
  )
  select count(*)::integer as lines,
         count(*) filter (where kind is not null and "timeMs" <= $3)::integer as late,
         count(*) filter (where kind is not null and "timeMs" > $3 and "timeMs" < $4)::integer as accepted,
         (select events from stored)::integer as stored
    from e`;
