import { expect, test } from "vitest";
import { QUERY_ERRORS } from "../../api-server/domain/analytics/refusals.ts";
import { usageTodo } from "../../dashboard/components/explain-error.ts";

test("every error of a usage query has advice or an error position", () => {
  const silent = QUERY_ERRORS.filter((kind) => usageTodo(kind) === undefined);
  expect(silent).toEqual([
    "invalid_analytics_query",
    "invalid_analytics_query_type",
    "invalid_analytics_table",
    "invalid_analytics_function",
  ]);
  expect(usageTodo("constructor")).toBeUndefined();
});
