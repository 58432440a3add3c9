import type { Queryable } from "../../postgres/queryable.ts";

/** Returns a value that Postern has stored under a name; `undefined` if there is none. */
export async function findSetting<T>(db: Queryable, name: string): Promise<T | undefined> {
  const { rows } = await db.query<{ value: T }>({
    name: "find-setting",
    text: "select value from settings where name = $1",
    values: [name],
  });
  return rows[0]?.value;
}

export async function putSetting(db: Queryable, name: string, value: unknown): Promise<void> {
  const text = `insert into settings (name, value) values ($1, $2::jsonb)
                on conflict (name) do update set value = excluded.value`;
  await db.query({ name: "put-setting", text, values: [name, JSON.stringify(value)] });
}
