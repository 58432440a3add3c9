import * as z from "zod";
import type { AnalyticsOf } from "../../../analytics/tables.ts";
import { QUERY_ERRORS } from "../../domain/analytics/refusals.ts";
import { runQuery } from "../../domain/analytics/run-query.ts";
import { keySpacesOf, namespacesOf } from "../../domain/analytics/scope.ts";
import { onApi, onNamespace, type RequiredPermission } from "../../domain/permissions/required-permissions.ts";
import { type Call, DataJson, defineProcedure, type Procedure } from "../../procedure.ts";

/* `analytics.getVerifications` and `analytics.getRatelimits`: SQL over usage (api-v2.md section 18). */

/** Body of a query. Other members are ignored. The length of `query` is checked after the permission. */
const Body = z.object({
  query: z
    .string()
    .describe("One SELECT in a subset of ClickHouse's SQL, at most 16,384 bytes long (UTF-8).")
    .meta({
      examples: ["SELECT outcome, sum(count) AS total FROM key_verifications_per_day_v1 GROUP BY outcome"],
    }),
});

const Rows = z
  .array(z.record(z.string(), z.unknown()))
  .describe(
    "One object per row, with one member per column, in the order of the SELECT. NaN and infinities are returned as null, times in RFC 3339 format in UTC.",
  );

interface Queried<Required extends RequiredPermission> extends Pick<Procedure, "path" | "summary" | "description"> {
  readonly of: AnalyticsOf;
  readonly readAnalytics: Required;
  /** Returns the key spaces or namespaces that the root key is allowed to read; `undefined` for all. */
  readonly scopeOf: typeof keySpacesOf;
}

function defineQuery<Required extends RequiredPermission>({
  of,
  readAnalytics,
  scopeOf,
  ...documented
}: Queried<Required>) {
  const permissions = { readAnalytics };
  const handle = async (call: Call<z.output<typeof Body>, typeof permissions>): Promise<DataJson> => {
    const { deps, body, caller } = call;
    const ids = call.idsHeld(readAnalytics);
    if (ids.length === 0) call.require(readAnalytics);
    const { workspaceId } = caller;
    const response = await runQuery(deps, {
      workspaceId,
      of,
      text: body.query,
      within: () => scopeOf(deps.db, { workspaceId, ids }),
      signal: call.untilDisconnected(),
    });
    return new DataJson(response.rowsJson);
  };
  return defineProcedure({
    ...documented,
    effect: "read",
    permissions,
    errors: QUERY_ERRORS,
    body: Body,
    data: Rows,
    handle,
  });
}

export const getVerifications = defineQuery({
  path: "analytics.getVerifications",
  summary: "Query key verifications",
  description:
    "Runs one read-only SQL query over the verifications of the workspace, or of the APIs that the root key is allowed to read. Rows, time and memory of a query are limited, and the workspace has an hourly quota of queries.",
  of: "verifications",
  readAnalytics: onApi("read_analytics"),
  scopeOf: keySpacesOf,
});

export const getRatelimits = defineQuery({
  path: "analytics.getRatelimits",
  summary: "Query rate-limit decisions",
  description:
    "Runs one read-only SQL query over the decisions of `ratelimit.limit` and `ratelimit.multiLimit` in the workspace, or in the namespaces that the root key is allowed to read. Rows, time and memory of a query are limited, and the workspace has an hourly quota of queries.",
  of: "ratelimits",
  readAnalytics: onNamespace("read_analytics"),
  scopeOf: namespacesOf,
});
