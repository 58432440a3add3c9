import { performance } from "node:perf_hooks";
import { PublicError } from "../../../core/errors.ts";
import { emitForClickhouse } from "../../analytics/clickhouse/emit.ts";
import {
  type AnalyticsStore,
  type QueryAnswer,
  type QueryLimits,
  QueryRefused,
  type QueryRun,
  type QueryScope,
  type StoreQuery,
} from "../../analytics/contract.ts";
import { readQuery } from "../../analytics/dialect/check.ts";
import { QueryProblem } from "../../analytics/dialect/problem.ts";
import { resolveQuery } from "../../analytics/dialect/resolve/resolve.ts";
import type { ResolvedQuery } from "../../analytics/dialect/resolve/resolved.ts";
import { type EmitOptions, emitForPostgres } from "../../analytics/postgres/emit/emit.ts";
import type { AnalyticsOf } from "../../analytics/tables.ts";
import type { Deps } from "../../deps.ts";
import { placeKeySpaces } from "./key-spaces.ts";
import { chargeQuery, chargeRunTime } from "./quota.ts";
import { refusedByRule, refusedByStore } from "./refusals.ts";
import { visibleFrom } from "./settings.ts";
import { settingsForReading } from "./verification-counts.ts";

export interface AskedQuery {
  readonly workspaceId: string;
  readonly of: AnalyticsOf;
  /** The caller's text. */
  readonly text: string;
  /** Looks up the key spaces or namespaces that the root key may read; undefined stands for all. */
  readonly within: () => Promise<readonly string[] | undefined>;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

/**
 * Runs a caller's query. A query that its rules refuse does not count against the quota.
 * @throws PublicError of one of `QUERY_ERRORS`, and the signal's reason when it is aborted.
 */
export async function runQuery(deps: Deps, asked: AskedQuery): Promise<QueryAnswer> {
  try {
    const answer = await run(deps, asked);
    deps.queryMetrics.ended("answered");
    return answer;
  } catch (error) {
    deps.queryMetrics.ended(
      error instanceof PublicError ? error.kind : asked.signal.aborted ? "abandoned" : "unexpected_error",
    );
    throw error;
  }
}

async function run(deps: Deps, { workspaceId, of, text, within, signal }: AskedQuery): Promise<QueryAnswer> {
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

/** Checks the text and makes a query for the store of its tree: nothing of the text itself reaches it. @throws PublicError 400. */
async function translate(
  deps: Deps,
  text: string,
  reading: Reading,
  within: readonly string[] | undefined,
): Promise<StoreQuery> {
  try {
    const checked = readQuery(text, reading);
    await placeKeySpaces(checked.query, deps.db, { workspaceId: reading.workspaceId, within });
    return EMIT[deps.analytics.kind](resolveQuery(checked), reading);
  } catch (error) {
    if (error instanceof QueryProblem) throw refusedByRule(error, text);
    throw error;
  }
}

/** Runs it and charges the time that it took, also when the store has given it up, or its caller has: leaving early is no way around the quota. */
async function runCharged(
  deps: Deps,
  query: StoreQuery,
  run: QueryRun & { readonly signal: AbortSignal },
): Promise<QueryAnswer> {
  const { workspaceId } = run.scope;
  const startedMs = performance.now();
  try {
    const answer = await deps.analytics.query(query, run);
    deps.queryMetrics.ran(answer.tookMs);
    await chargeRunTime(deps, { workspaceId, tookMs: answer.tookMs });
    return answer;
  } catch (error) {
    const isRefused = error instanceof QueryRefused;
    if (isRefused ? error.reason !== "unavailable" : run.signal.aborted) {
      const tookMs = performance.now() - startedMs;
      deps.queryMetrics.ran(tookMs);
      await chargeRunTime(deps, { workspaceId, tookMs });
    }
    throw isRefused ? refusedByStore(error) : error;
  }
}
