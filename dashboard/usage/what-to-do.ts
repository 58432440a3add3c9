/** Returns advice for a rejected usage query by error kind; `undefined` for kinds that every procedure has. */
export function usageTodo(kind: string): string | undefined {
  return Object.hasOwn(WHAT_TO_DO, kind) ? WHAT_TO_DO[kind] : undefined;
}

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  analytics_not_configured:
    "An admin of the workspace can turn usage queries on in the settings or with `postern workspace update --analytics on`. Events are counted in any case.",
  query_quota_exceeded:
    "The workspace has used up its queries for this hour. Open pages send queries, too: pause their refresh, or ask an admin for a larger quota.",
  query_execution_timeout:
    "Query less data: a shorter period, one API or key, or a table with larger buckets such as days.",
  query_memory_limit_exceeded: "Query fewer rows or columns, or aggregate them in the query.",
  query_rows_limit_exceeded: "Query fewer rows, with a condition or a LIMIT.",
  query_range_exceeds_retention: "Choose a later start: the workspace does not retain older data.",
  server_busy: "Other queries are running. The page retries automatically; query less data, or a shorter period.",
  analytics_connection_failed:
    "Verification is unaffected, and events wait until the analytics store is available. The page retries automatically; the page Installation shows the failed dependency.",
};
