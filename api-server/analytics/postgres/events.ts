import type { RatelimitEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import type { Queryable } from "../../store/queryable.ts";

/*
 * Usage events. An event that is stored already is not changed, and is not in the result: the caller aggregates only new events, so
 * that an event that is delivered twice counts once.
 */

/** SQL for the UTC date of an instant, by which the tables are partitioned. */
const DAY = "(to_timestamp(e.time / 1000.0) at time zone 'UTC')::date";

/** Returns the ids of the new events. */
export async function insertVerificationEvents(
  tx: Queryable,
  events: readonly VerificationEvent[],
): Promise<ReadonlySet<string>> {
  const text = `insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id,
                                                 identity_id, external_id, outcome, tags, source, region, spent_credits,
                                                 latency_ms)
                select ${DAY}, e.*
                  from jsonb_to_recordset($1::jsonb)
                       as e (id text, request_id text, time bigint, workspace_id text, key_space_id text, api_id text,
                             key_id text, identity_id text, external_id text, outcome text, tags text[], source text,
                             region text, spent_credits bigint, latency_ms double precision)
                on conflict (day, id) do nothing
                returning id`;
  const rows = events.map((event) => ({
    id: event.id,
    request_id: event.requestId,
    time: event.timeMs,
    workspace_id: event.workspaceId,
    key_space_id: event.keySpaceId,
    api_id: event.apiId,
    key_id: event.keyId,
    identity_id: event.identityId ?? "",
    external_id: event.externalId ?? "",
    outcome: event.outcome,
    tags: event.tags,
    source: event.source,
    region: event.region,
    spent_credits: event.spentCredits,
    latency_ms: event.latencyMs,
  }));
  return insert(tx, "insert-verification-events", text, rows);
}

/** Returns the ids of the new events. */
export async function insertRatelimitEvents(
  tx: Queryable,
  events: readonly RatelimitEvent[],
): Promise<ReadonlySet<string>> {
  const text = `insert into ratelimit_events (day, id, request_id, time, workspace_id, namespace_id, identifier, passed,
                                              latency_ms, override_id, max_count, remaining, reset_at, cost)
                select ${DAY}, e.*
                  from jsonb_to_recordset($1::jsonb)
                       as e (id text, request_id text, time bigint, workspace_id text, namespace_id text, identifier text,
                             passed boolean, latency_ms double precision, override_id text, max_count bigint,
                             remaining bigint, reset_at bigint, cost bigint)
                on conflict (day, id) do nothing
                returning id`;
  const rows = events.map((event) => ({
    id: event.id,
    request_id: event.requestId,
    time: event.timeMs,
    workspace_id: event.workspaceId,
    namespace_id: event.namespaceId,
    identifier: event.identifier,
    passed: event.passed,
    latency_ms: event.latencyMs,
    override_id: event.overrideId ?? "",
    max_count: event.limit,
    remaining: event.remaining,
    reset_at: event.resetMs,
    cost: event.cost,
  }));
  return insert(tx, "insert-ratelimit-events", text, rows);
}

async function insert(tx: Queryable, name: string, text: string, rows: readonly Row[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set();
  const result = await tx.query<{ id: string }>({ name, text, values: [JSON.stringify(rows.map(storable))] });
  return new Set(result.rows.map(({ id }) => id));
}

type Row = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** The only column with fractions; all other numbers are integers. */
const FRACTION = "latency_ms";

/**
 * Replaces what Postgres refuses: U+0000, lone surrogates, a fraction in an integer column. Pods can write such events, and one
 * of them would stop the ingestion of all others for ever.
 */
function storable(row: Row): Row {
  const clean = (text: string): string => text.toWellFormed().replaceAll("\u0000", "\ufffd");
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => {
      if (typeof value === "string") return [column, clean(value)];
      if (typeof value === "number" && column !== FRACTION) return [column, toInteger(value)];
      return [column, Array.isArray(value) ? value.map(clean) : value];
    }),
  );
}

const toInteger = (value: number): number => Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.trunc(value)));
