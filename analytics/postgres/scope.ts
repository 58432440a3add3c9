import type { Queryable } from "../../postgres/queryable.ts";
import { ANALYTICS_ROLE } from "./role.ts";

/** Scope of the current transaction: the rows that it may read. Times are Unix ms, by table; `within` is `undefined` for all ids. */
export interface BoundScope {
  readonly workspaceId: string;
  readonly within: readonly string[] | undefined;
  readonly visibleFrom: Readonly<Record<"raw" | "minute" | "hour" | "day" | "month", number>>;
}

/** Returns the names of the settings that the database user may set. Some are reserved for superusers. */
export async function settableSettings(db: Queryable, names: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ name: string }>(
    `select lower(s.name) as name from pg_settings s
      where lower(s.name) = any($1) and (s.context = 'user' or has_parameter_privilege(current_user, s.name, 'SET'))`,
    [names],
  );
  return new Set(rows.map(({ name }) => name));
}

/**
 * Begins a read-only transaction with these settings and this scope. Switches from the user's own role to the role that reads the views.
 * The settings and the role end with the transaction.
 */
export async function beginReading(
  tx: Queryable,
  scope: BoundScope,
  settings: ReadonlyMap<string, string>,
): Promise<void> {
  await tx.query("begin read only");
  await tx.query({
    name: "bind-analytics-scope",
    text: `select analytics.bind_scope($1, $2, $3),
                  (select count(set_config(s.name, s.value, true)) from unnest($4::text[], $5::text[]) as s(name, value))`,
    values: [scope.workspaceId, scope.within ?? null, scope.visibleFrom, [...settings.keys()], [...settings.values()]],
  });
  await tx.query(`set local role ${ANALYTICS_ROLE}`);
}
