/** Returns advice for a rejected usage query by error kind; `undefined` for kinds that every procedure has. */
export function usageTodo(kind: string): string | undefined {
  return Object.hasOwn(WHAT_TO_DO, kind) ? WHAT_TO_DO[kind] : undefined;
}

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  analytics_not_configured:
    "An admin of the workspace can switch usage on, in its settings or by `postern workspace update --analytics on`. Events are counted meanwhile.",
  query_quota_exceeded:
    "The queries of the workspace for this hour are used up. Pages that are open ask too: pause their refresh, or ask an admin for a larger quota.",
  query_execution_timeout:
    "Ask for less: a shorter time, one API or key, or a table of larger buckets such as those per day.",
  query_memory_limit_exceeded: "Ask for fewer rows or columns, or let the query sum them up.",
  query_rows_limit_exceeded: "Ask for fewer rows, with a condition or a LIMIT.",
  query_range_exceeds_retention: "Choose a later beginning: what is older is not kept for this workspace.",
  server_busy: "Other queries run. It is tried again by itself; ask for less at once, or for a shorter time.",
  analytics_connection_failed:
    "Keys are verified all the same, and events wait until the store is back. It is tried again by itself; the page Installation shows what is away.",
};
