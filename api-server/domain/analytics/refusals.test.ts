import { expect, test } from "vitest";
import { QueryRejected } from "../../../analytics/contract.ts";
import { ERROR_KINDS } from "../../../core/errors.ts";
import { QUERY_ERRORS, refusedByStore } from "./refusals.ts";

test.each([
  { reason: "rows", kind: "query_rows_limit_exceeded", status: 422 },
  { reason: "timeout", kind: "query_execution_timeout", status: 422 },
  { reason: "memory", kind: "query_memory_limit_exceeded", status: 422 },
  { reason: "query", kind: "invalid_analytics_query", status: 400 },
] as const)(
  "analytics query rejected for $reason returns the error kind $kind with the database message",
  ({ reason, kind, status }) => {
    const error = refusedByStore(new QueryRejected(reason, "Unknown column x."));
    expect([error.kind, error.detail, ERROR_KINDS[error.kind].status]).toEqual([kind, "Unknown column x.", status]);
    expect(QUERY_ERRORS).toContain(kind);
  },
);

test("unreachable analytics database causes a 503 response that does not name the database", () => {
  const error = refusedByStore(new QueryRejected("unavailable", "connect ECONNREFUSED 10.0.0.7:5432"));
  expect([error.kind, ERROR_KINDS[error.kind].status]).toEqual(["analytics_connection_failed", 503]);
  expect(error.detail).not.toContain("10.0.0.7");
});
