import { QueryRejected } from "../../../analytics/contract.ts";
import type { CountOrder, UsageCount } from "../../../analytics/counts.ts";
import { PublicError } from "../../../core/errors.ts";
import type { ReadDeps, UsageDeps } from "../deps.ts";
import { invalidField } from "../refusals/refusals.ts";
import { refusedByStore } from "./refusals.ts";
import { type AnalyticsSettings, analyticsSettingsOf, visibleFrom } from "./settings.ts";
import { countUsage, countWithin, FILLED_MAX, type UsageQuery } from "./usage.ts";

/** Errors of `countVerifications` and `countDays`. */
export const COUNT_ERRORS = [
  "analytics_not_configured",
  "query_execution_timeout",
  "analytics_connection_failed",
] as const;

const BY_TIME: CountOrder = { by: "time", descending: false };

/**
 * Returns the analytics settings of the workspace.
 * @throws PublicError 412 `analytics_not_configured`.
 */
export async function settingsForReading(deps: ReadDeps, workspaceId: string): Promise<AnalyticsSettings> {
  const settings = await analyticsSettingsOf(deps.db, workspaceId);
  if (settings.enabled) return settings;
  throw new PublicError(
    "analytics_not_configured",
    "Analytics queries are disabled for the workspace; an administrator can enable them.",
  );
}

/**
 * Counts verifications like `countUsage`.
 * @throws PublicError 400 if the response would have too many rows, or one of `COUNT_ERRORS`.
 */
export async function countVerifications(deps: UsageDeps, question: UsageQuery): Promise<readonly UsageCount[]> {
  const usage = await asked(deps, question.workspaceId, (count, clock) => countUsage(count, question, clock));
  if (usage.kind === "counted") return usage.rows;
  throw invalidField(
    "body.groupBy",
    `the response would have more than ${usage.rowsMax} rows; request a shorter time range, larger time units or a limit`,
  );
}

/**
 * Counts the verifications of keys per UTC day. The days are sorted by time; days without verifications are omitted.
 * @throws PublicError one of `COUNT_ERRORS`.
 */
export async function countDays(
  deps: UsageDeps,
  of: Pick<UsageQuery, "workspaceId" | "startMs" | "endMs"> & { readonly keyIds: readonly string[] },
): Promise<readonly UsageCount[]> {
  const question = { ...of, keySpaceIds: undefined, identityId: undefined, tags: [], slice: "day", by: [] } as const;
  return asked(deps, of.workspaceId, (count, clock) =>
    countWithin(count, question, clock, { order: BY_TIME, rowsMax: FILLED_MAX }),
  );
}

/**
 * Returns the error for a query that takes too long. Its message is the same for both analytics stores, and says what the caller can
 * change.
 */
const tooSlow = (cause: QueryRejected): QueryRejected =>
  new QueryRejected(
    "timeout",
    "The count exceeded its time limit. Request a shorter time range or larger time units.",
    {
      cause,
    },
  );

async function asked<T>(
  deps: UsageDeps,
  workspaceId: string,
  ask: (count: Parameters<typeof countUsage>[0], clock: Parameters<typeof countUsage>[2]) => Promise<T>,
): Promise<T> {
  const { retention } = await settingsForReading(deps, workspaceId);
  const nowMs = deps.nowMs();
  try {
    return await ask((question) => deps.analytics.countVerifications(question), {
      nowMs,
      visibleFromMs: visibleFrom(retention, "verifications", nowMs).hour,
    });
  } catch (error) {
    if (error instanceof QueryRejected) throw refusedByStore(error.reason === "timeout" ? tooSlow(error) : error);
    throw error;
  }
}
