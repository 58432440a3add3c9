import { QUERY_ERRORS } from "../../domain/analytics/refusals.ts";
import { runQuery } from "../../domain/analytics/run-query.ts";
import { keySpacesOf } from "../../domain/analytics/scope.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, DataJson, defineProcedure } from "../../procedure.ts";
import { QueryBody, RowsOut } from "./schemas.ts";

const required = { readAnalytics: onApi("read_analytics") };

export const getVerifications = defineProcedure({
  path: "analytics.getVerifications",
  effect: "read",
  summary: "Query the verifications of keys",
  description:
    "Runs one read-only SQL query over the verifications of the workspace, or of the APIs that the root key may read. Queries have limits in rows, time and memory, and the workspace a quota of them per hour.",
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
    of: "verifications",
    text: body.query,
    within: () => keySpacesOf(deps.db, { workspaceId, ids }),
    signal: call.untilDisconnected(),
  });
  return new DataJson(response.rowsJson);
}
