import { textLiteral } from "../../usage/queries.ts";

const DAYS = 7;
const ROWS = 50;

/**
 * Query for the newest verifications of a key. Its time range limits the number of rows that the database reads. `time` of raw events is
 * Unix ms.
 */
export const lastRequestsQuery = (keyId: string, nowMs: number): string =>
  `SELECT time, outcome, request_id, source, region, spent_credits, tags
FROM key_verifications_v1
WHERE time >= ${nowMs - DAYS * 86_400_000}
  AND key_id = ${textLiteral(keyId)}
ORDER BY time DESC, request_id
LIMIT ${ROWS}`;

export interface LastRequest {
  readonly timeMs: number;
  readonly outcome: string;
  readonly requestId: string;
  readonly source: string;
  readonly region: string;
  readonly credits: number;
  readonly tags: readonly string[];
}

/** Reads the rows of the query. Values with an unexpected type become empty strings, because the rows are only displayed. */
export const readLastRequests = (rows: readonly Readonly<Record<string, unknown>>[]): LastRequest[] =>
  rows.map((row) => ({
    timeMs: Number(row.time),
    outcome: String(row.outcome ?? ""),
    requestId: String(row.request_id ?? ""),
    source: String(row.source ?? ""),
    region: String(row.region ?? ""),
    credits: Number(row.spent_credits),
    tags: Array.isArray(row.tags) ? row.tags.map(String) : [],
  }));
