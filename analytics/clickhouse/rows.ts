import type { RatelimitEvent, TakenEvents, UsageEvent, VerificationEvent } from "../../edge/events/contract.ts";
import { type AcceptedTimes, cleanLine } from "../accepted-events.ts";
import { type AnalyticsRetention, daysKept } from "../retention.ts";
import type { AnalyticsOf } from "../tables.ts";
import { KEPT_DAYS } from "./schema.ts";

type Value = string | number | boolean | readonly string[] | readonly number[];

/** Valid events of a batch without duplicates, by kind. */
export interface SortedBatch {
  readonly verifications: readonly VerificationEvent[];
  readonly ratelimits: readonly RatelimitEvent[];
  readonly late: number;
  readonly omitted: number;
}

/**
 * Maximum length of a value in a sorting or grouping key of the count tables. Postgres has the same limit, because its index entries are
 * limited in size.
 */
const ID_LENGTH_MAX = 256;
const OUTCOME_LENGTH_MAX = 64;

export function sortBatch(batch: TakenEvents, { afterMs, beforeMs }: AcceptedTimes): SortedBatch {
  const verifications = new Map<string, VerificationEvent>();
  const ratelimits = new Map<string, RatelimitEvent>();
  let [late, accepted] = [0, 0];
  for (const event of batch) {
    if (!isBounded(event) || event.timeMs >= beforeMs) continue;
    accepted += 1;
    if (event.timeMs <= afterMs) late += 1;
    else if (event.type === "verification") setFirst(verifications, event);
    else setFirst(ratelimits, event);
  }
  const lines = batch.lines.split("\n").filter((line) => line !== "").length;
  return {
    verifications: [...verifications.values()],
    ratelimits: [...ratelimits.values()],
    late,
    omitted: lines - accepted,
  };
}

/** Keeps the first of two events with the same id, as a primary key would. */
function setFirst<E extends UsageEvent>(events: Map<string, E>, event: E): void {
  const cleaned = isClean(event) ? event : (JSON.parse(cleanLine(event)) as E);
  if (!events.has(cleaned.id)) events.set(cleaned.id, cleaned);
}

const isBounded = (event: UsageEvent): boolean =>
  event.type === "ratelimit" ||
  (event.keySpaceId.length <= ID_LENGTH_MAX &&
    event.keyId.length <= ID_LENGTH_MAX &&
    event.outcome.length <= OUTCOME_LENGTH_MAX);

/** Returns whether `cleanLine` would leave the event unchanged, which is the case for nearly every event. The check is cheap. */
function isClean(event: UsageEvent): boolean {
  for (const value of Object.values(event)) {
    if (typeof value === "string" && !isText(value)) return false;
    if (Array.isArray(value) && !value.every(isText)) return false;
  }
  return event.type === "verification"
    ? Number.isSafeInteger(event.spentCredits)
    : [event.limit, event.remaining, event.cost].every(Number.isSafeInteger);
}

const isText = (text: string): boolean => text.isWellFormed() && !text.includes("\0");

/** Returns the retention of each table in days, in the order of `KEPT_DAYS`. */
export const keptDays = (retention: AnalyticsRetention, of: AnalyticsOf): number[] =>
  KEPT_DAYS.map((bucket) => daysKept(retention, of, bucket === "raw" ? undefined : bucket));

/** Values common to all rows of a batch. */
export interface RowsOf {
  /** Batch id: 32 hexadecimal digits. */
  readonly batchId: string;
  readonly keptDays: readonly number[];
}

/** Returns a verification row in the column order of `ARRIVING`. */
export const verificationRow = (event: VerificationEvent, of: RowsOf): Value[] => [
  ...common(event, of),
  event.keySpaceId,
  event.apiId,
  event.keyId,
  event.identityId ?? "",
  event.externalId ?? "",
  event.outcome,
  event.tags,
  event.source,
  event.appId ?? "",
  event.region,
  event.spentCredits,
  event.latencyMs,
];

/** Returns a rate-limit row in the column order of `ARRIVING`. */
export const ratelimitRow = (event: RatelimitEvent, of: RowsOf): Value[] => [
  ...common(event, of),
  event.namespaceId,
  event.identifier,
  event.passed,
  event.latencyMs,
  event.overrideId ?? "",
  event.limit,
  event.remaining,
  event.resetMs,
  event.cost,
];

const common = (event: UsageEvent, { batchId, keptDays }: RowsOf): Value[] => [
  event.workspaceId,
  event.timeMs,
  event.id,
  event.requestId,
  batchId,
  keptDays,
];
