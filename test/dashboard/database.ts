import pg from "pg";
import type { Dashboard } from "./harness.ts";

/** Runs a statement on the database of a dashboard: for what no procedure makes, and for what is too much to be made one by one. */
export async function inDatabase(
  { databaseUrl }: Pick<Dashboard, "databaseUrl">,
  text: string,
  values: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end();
  }
}
