import { textLiteral } from "./queries.ts";

/*
 * Log of single requests, newest first: the queries over the raw events, and how pages of rows fit together. Rows are in the order of time
 * and request id. One call of `ratelimit.multiLimit` has several rows with the same time and request id, so a page must end between
 * requests: the next page reads the rows of the previous page's last request again.
 */

export type LogOf = "verifications" | "ratelimits";

/** Filters of the log. An `undefined` member does not filter. The first four apply to verifications, the others to rate limits. */
export interface LogFilter {
  readonly outcome?: string | undefined;
  readonly keySpaceId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly externalId?: string | undefined;
  readonly passed?: boolean | undefined;
  readonly namespaceId?: string | undefined;
  readonly identifier?: string | undefined;
}

/** Cursor: the row at which the next page begins, and the start of the log, Unix ms. */
export interface Cursor {
  readonly sinceMs: number;
  readonly timeMs: number;
  readonly requestId: string;
  /** Whether the next page begins after the rows of this request. */
  readonly isAfter: boolean;
}

/** Part of the log to read: the newest rows since a time, Unix ms, or the rows from a cursor. */
export type LogPart = { readonly sinceMs: number } | Cursor;

/** Maximum number of rows of a query. */
export const PAGE_ROWS = 100;

/** Query for one page of the log. `time` of raw events is Unix ms. */
export function logQuery(of: LogOf, part: LogPart, filter: LogFilter = {}): string {
  const { table, columns, ties, conditions } = LOGS[of];
  const from = "timeMs" in part ? part : undefined;
  const where = [
    `time >= ${part.sinceMs}`,
    ...(from === undefined
      ? []
      : [
          `time <= ${from.timeMs}`,
          `(time < ${from.timeMs} OR request_id ${from.isAfter ? "<" : "<="} ${textLiteral(from.requestId)})`,
        ]),
    ...conditions(filter),
  ];
  return `SELECT ${columns}
FROM ${table}
WHERE ${where.join("\n  AND ")}
ORDER BY time DESC, request_id DESC, ${ties}
LIMIT ${PAGE_ROWS}`;
}

const equal = (column: string, wanted: string | undefined): string[] =>
  wanted === undefined ? [] : [`${column} = ${textLiteral(wanted)}`];

const LOGS = {
  verifications: {
    table: "key_verifications_v1",
    columns: "time, request_id, outcome, key_id, key_space_id, external_id, region, tags",
    ties: "key_id, outcome",
    conditions: ({ outcome, keySpaceId, keyId, externalId }: LogFilter) => [
      ...equal("outcome", outcome),
      ...equal("key_space_id", keySpaceId),
      ...equal("key_id", keyId),
      ...equal("external_id", externalId),
    ],
  },
  ratelimits: {
    table: "ratelimits_v1",
    columns: "time, request_id, passed, namespace_id, identifier, override_id, `limit`, remaining",
    ties: "namespace_id, identifier",
    conditions: ({ passed, namespaceId, identifier }: LogFilter) => [
      ...(passed === undefined ? [] : [passed ? "passed" : "NOT passed"]),
      ...equal("namespace_id", namespaceId),
      ...equal("identifier", identifier),
    ],
  },
} as const;

interface Logged {
  /** Id of the row, unique in the log. */
  readonly id: string;
  readonly timeMs: number;
  readonly requestId: string;
}

export interface VerificationRow extends Logged {
  readonly outcome: string;
  readonly keyId: string;
  readonly keySpaceId: string;
  readonly externalId: string;
  readonly region: string;
  readonly tags: readonly string[];
}

export interface RatelimitRow extends Logged {
  readonly passed: boolean;
  readonly namespaceId: string;
  readonly identifier: string;
  readonly overrideId: string;
  readonly limit: number;
  readonly remaining: number;
}

export interface RowOf {
  readonly verifications: VerificationRow;
  readonly ratelimits: RatelimitRow;
}

type Answer = readonly Readonly<Record<string, unknown>>[];

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));

/** Reads the rows of `logQuery`. Values with an unexpected type become strings, because the rows are only displayed. */
export const READ_ROWS: { readonly [Of in LogOf]: (answer: Answer) => readonly RowOf[Of][] } = {
  verifications: (answer) =>
    withIds(answer, (row) => ({
      outcome: text(row.outcome),
      keyId: text(row.key_id),
      keySpaceId: text(row.key_space_id),
      externalId: text(row.external_id),
      region: text(row.region),
      tags: Array.isArray(row.tags) ? row.tags.map(String) : [],
    })),
  ratelimits: (answer) =>
    withIds(answer, (row) => ({
      passed: row.passed === true,
      namespaceId: text(row.namespace_id),
      identifier: text(row.identifier),
      overrideId: text(row.override_id),
      limit: Number(row.limit),
      remaining: Number(row.remaining),
    })),
};

function withIds<T>(answer: Answer, read: (row: Answer[number]) => T): (T & Logged)[] {
  const seen = new Map<string, number>();
  return answer.map((row) => {
    const [timeMs, requestId] = [Number(row.time), text(row.request_id)];
    const request = `${timeMs} ${requestId}`;
    const count = seen.get(request) ?? 0;
    seen.set(request, count + 1);
    return { ...read(row), id: `${request} ${count}`, timeMs, requestId };
  });
}

/** Consecutive rows of the log: no stored row between the first and the last is missing. */
export interface LogPage<T extends Logged> {
  readonly rows: readonly T[];
  /** Start of the log, Unix ms. */
  readonly sinceMs: number;
  /** Cursor at which older rows begin; `undefined` if there are none. */
  readonly next: Cursor | undefined;
}

const isOf = (one: { readonly timeMs: number; readonly requestId: string }, other: typeof one): boolean =>
  one.timeMs === other.timeMs && one.requestId === other.requestId;

/**
 * Returns the page that consists of the rows of a query. A full page ends before its last request, whose rows may continue beyond the page.
 */
export function logPage<T extends Logged>(rows: readonly T[], sinceMs: number): LogPage<T> {
  const last = rows.at(-1);
  if (last === undefined || rows.length < PAGE_ROWS) return { rows, sinceMs, next: undefined };
  const complete = rows.filter((row) => !isOf(row, last));
  const next = { sinceMs, timeMs: last.timeMs, requestId: last.requestId };
  return complete.length === 0
    ? { rows, sinceMs, next: { ...next, isAfter: true } }
    : { rows: complete, sinceMs, next: { ...next, isAfter: false } };
}

/** The log with its newest rows read again. */
export interface Followed<T extends Logged> {
  readonly page: LogPage<T>;
  /** Number of rows that the log did not have. */
  readonly added: number;
  /** Whether there are more new rows than one query reads. If so, the next pages contain further new rows. */
  readonly hasMore: boolean;
}

/**
 * Adds the newest rows to the log. Events are stored a few seconds late and out of order. So `fresh` overlaps the log, and replaces the
 * rows in the time range that it covers. Without an overlap, the log starts over with `fresh`, and reads all older rows page by page.
 */
export function followLog<T extends Logged>(log: LogPage<T>, fresh: LogPage<T>): Followed<T> {
  const { next } = fresh;
  const known = new Set(log.rows.map(({ id }) => id));
  const added = fresh.rows.filter(({ id }) => !known.has(id)).length;
  const at = log.rows.findIndex((row) => (next === undefined ? row.timeMs < fresh.sinceMs : isOf(row, next)));
  if (next !== undefined && at === -1) {
    const { sinceMs } = log;
    return { page: { rows: fresh.rows, sinceMs, next: { ...next, sinceMs } }, added, hasMore: true };
  }
  const older = at === -1 ? [] : log.rows.slice(at).filter((row) => !(next?.isAfter && isOf(row, next)));
  return { page: { ...log, rows: [...fresh.rows, ...older] }, added, hasMore: false };
}
