/* Queries that ran in this browser, newest first. Results are not stored. */

export interface PastQuery {
  readonly sql: string;
  /** Unix ms. */
  readonly atMs: number;
}

const QUERIES_MAX = 50;

/** Adds a query to the history. A repeated query moves to the front. */
export const withQuery = (history: readonly PastQuery[], query: PastQuery): PastQuery[] =>
  [query, ...history.filter(({ sql }) => sql !== query.sql)].slice(0, QUERIES_MAX);

/** Parses the stored history; returns an empty history if it is invalid. */
export function readHistory(stored: string | null): PastQuery[] {
  try {
    const read: unknown = JSON.parse(stored ?? "[]");
    if (!Array.isArray(read)) return [];
    return read
      .filter(isPastQuery)
      .slice(0, QUERIES_MAX)
      .map(({ sql, atMs }) => ({ sql, atMs }));
  } catch {
    return [];
  }
}

const isPastQuery = (one: unknown): one is PastQuery =>
  typeof one === "object" &&
  one !== null &&
  "sql" in one &&
  typeof one.sql === "string" &&
  "atMs" in one &&
  Number.isFinite(one.atMs);
