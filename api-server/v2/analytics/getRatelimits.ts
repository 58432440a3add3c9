import { QUERY_ERRORS } from "../../domain/analytics/refusals.ts";
import { runQuery } from "../../domain/analytics/run-query.ts";
import { namespacesOf } from "../../domain/analytics/scope.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { type Call, DataJson, defineProcedure } from "../../procedure.ts";
import { QueryBody, RowsOut } from "./schemas.ts";

const required = { readAnalytics: onNamespace("read_analytics") };

export const getRatelimits = defineProcedure({
  path: "analytics.getRatelimits",
  effect: "read",
  summary: "Query the decisions of rate limits",
  description:
    "Runs one read-only SQL query over the decisions of `ratelimit.limit` and `ratelimit.multiLimit` in the workspace, or in the namespaces that the root key may read. Queries have limits in rows, time and memory, and the workspace a quota of them per hour.",
  permissions: required,
  errors: QUERY_ERRORS,
  body: QueryBody,
  data: RowsOut,
  handle,
});

async function handle(call: Call<QueryBody, typeof required>): Promise<DataJson> {
  const { deps, body, caller } = call;
  const ids = call.idsHeld(required.readAnalytics);
  if (ids.length === 0) call.require(required.readAnalytics);
  const { workspaceId } = caller;
  const response = await runQuery(deps, {
    workspaceId,
    of: "ratelimits",
    text: body.query,
    within: () => namespacesOf(deps.db, { workspaceId, ids }),
    signal: call.untilDisconnected(),
  });
  return new DataJson(response.rowsJson);
}
