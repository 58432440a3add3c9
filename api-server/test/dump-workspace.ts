import type { Queryable } from "../../postgres/queryable.ts";

/** Tables without a workspace column, because they belong to the installation. */
const OF_INSTALLATION = new Set(["settings", "schema_migrations", "sessions", "sign_in_flows"]);

/** Returns, as text, all rows of a workspace in all tables. */
export async function dumpWorkspace(db: Queryable, workspaceId: string): Promise<string> {
  const { rows: tables } = await db.query<{ table_name: string; has_workspace: boolean }>(
    `select t.table_name,
            exists (select from information_schema.columns c
                     where c.table_schema = t.table_schema and c.table_name = t.table_name and c.column_name = 'workspace_id')
              as has_workspace
       from information_schema.tables t
      where t.table_schema = 'public' and t.table_type = 'BASE TABLE'
      order by t.table_name`,
  );
  const parts: string[] = [];
  for (const { table_name: table, has_workspace } of tables) {
    if (OF_INSTALLATION.has(table)) continue;
    const column = table === "workspaces" ? "id" : has_workspace ? "workspace_id" : undefined;
    if (column === undefined)
      throw new Error(`whose are the rows of ${table}? It has no workspace_id: say so in dump-workspace.ts`);
    const { rows } = await db.query(
      `select to_jsonb(one)::text as row from ${table} one where ${column} = $1 order by 1`,
      [workspaceId],
    );
    parts.push(table, ...rows.map(({ row }) => row));
  }
  return parts.join("\n");
}
