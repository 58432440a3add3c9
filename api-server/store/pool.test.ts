import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { createPool } from "./pool.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

test("a connection that is lost while a transaction waits for something else fails that transaction, and nothing more", async () => {
  const db = createPool(database.url, { connectionsMax: 1 });
  const other = createPool(database.url, { connectionsMax: 1 });
  const tx = await db.connect();
  await tx.query("begin");
  const { rows } = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
  const lost = new Promise<Error>((resolve) => tx.once("end", () => resolve(new Error("lost"))));
  await other.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
  const reason = await lost;
  await expect(tx.query("select 1")).rejects.toThrow();
  tx.release(reason);
  await waitFor("the pool to work again", async () => (await db.query("select 1")).rowCount === 1);
  await Promise.all([db.end(), other.end()]);
});
