import { performance } from "node:perf_hooks";
import {
  type AnalyticsStore,
  type QueryLimits,
  QueryRejected,
  type QueryResponse,
  type QueryRun,
  type QueryScope,
  type StoreQuery,
} from "../../../analytics/contract.ts";
import { readQuery } from "../../../analytics/dialect/check.ts";
import { emitForClickhouse } from "../../../analytics/dialect/clickhouse/emit.ts";
import { type EmitOptions, emitForPostgres } from "../../../analytics/dialect/postgres/emit.ts";
import { QueryProblem } from "../../../analytics/dialect/problem.ts";
import { resolveQuery } from "../../../analytics/dialect/resolve/resolve.ts";
import type { ResolvedQuery } from "../../../analytics/dialect/resolve/resolved.ts";
import type { AnalyticsOf } from "../../../analytics/tables.ts";
import { PublicError } from "../../../core/errors.ts";
import type { UsageDeps } from "../deps.ts";
import { joinKeySpaces } from "./key-spaces.ts";
import { chargeQuery, chargeRunTime } from "./quota.ts";
import { refusedByRule, refusedByStore } from "./refusals.ts";
import { visibleFrom } from "./settings.ts";
import { settingsForReading } from "./verification-counts.ts";

export interface RequestedQuery {
  readonly workspaceId: string;
  readonly of: AnalyticsOf;
  /** Text of the query, as the caller sent it. */
  readonly text: string;
  /** Returns the key spaces or namespaces that the root key is allowed to read; `undefined` for all. */
  readonly within: () => Promise<readonly string[] | undefined>;
  /** Signal that is aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Runs a caller's query. An invalid query does not count against the quota.
 * @throws PublicError one of `QUERY_ERRORS`, and the signal's reason if it is aborted.
 */
export async function runQuery(deps: UsageDeps, asked: RequestedQuery): Promise<QueryResponse> {
  try {
    const response = await run(deps, asked);
    deps.queryMetrics.ended("answered");
    return response;
  } catch (error) {
    deps.queryMetrics.ended(
      error instanceof PublicError ? error.kind : asked.signal.aborted ? "abandoned" : "unexpected_error",
    );
    throw error;
  }
}

async function run(deps: UsageDeps, { workspaceId, of, text, within, signal }: RequestedQuery): Promise<QueryResponse> {
  const { retention, limits } = await settingsForReading(deps, workspaceId);
  const nowMs = deps.nowMs();
  const clock = { nowMs, visibleFrom: visibleFrom(retention, of, nowMs) };
  const reading = { of, workspaceId, rowsMax: limits.rowsMax, ...clock };
  const allowed = await within();
  const query = await translate(deps, text, reading, allowed);
  const scope = { workspaceId, within: allowed, ...clock };
  await chargeQuery(deps, { workspaceId, limits });
  return runCharged(deps, query, { scope, limits, signal });
}

type Emit = (query: ResolvedQuery, options: EmitOptions) => StoreQuery;

const EMIT: Readonly<Record<AnalyticsStore["kind"], Emit>> = {
  postgres: emitForPostgres,
  clickhouse: emitForClickhouse,
};

type Reading = Omit<QueryScope, "within"> & Pick<QueryLimits, "rowsMax"> & { readonly of: AnalyticsOf };

/**
 * Parses the caller's text and generates a query for the analytics store from the syntax tree, so that none of the text reaches the store.
 * @throws PublicError 400.
 */
async function translate(
  deps: UsageDeps,
  text: string,
  reading: Reading,
  within: readonly string[] | undefined,
): Promise<StoreQuery> {
  try {
    const checked = readQuery(text, reading);
    await joinKeySpaces(checked.query, deps.db, { workspaceId: reading.workspaceId, within });
    return EMIT[deps.analytics.kind](resolveQuery(checked), reading);
  } catch (error) {
    if (error instanceof QueryProblem) throw refusedByRule(error, text);
    throw error;
  }
}

/**
 * Runs the query and charges its run time. A query that the store or the caller aborts is charged as well, so that a caller cannot bypass
 * the quota by disconnecting.
 */
async function runCharged(
  deps: UsageDeps,
  query: StoreQuery,
  run: QueryRun & { readonly signal: AbortSignal },
): Promise<QueryResponse> {
  const { workspaceId } = run.scope;
  const startedMs = performance.now();
  try {
    const response = await deps.analytics.query(query, run);
    deps.queryMetrics.ran(response.tookMs);
    await chargeRunTime(deps, { workspaceId, tookMs: response.tookMs });
    return response;
  } catch (error) {
    const isRefused = error instanceof QueryRejected;
    if (isRefused ? error.reason !== "unavailable" : run.signal.aborted) {
      const tookMs = performance.now() - startedMs;
      deps.queryMetrics.ran(tookMs);
      await chargeRunTime(deps, { workspaceId, tookMs });
    }
    throw isRefused ? refusedByStore(error) : error;
  }
}
