import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../test/harness/postgres.ts";
import { waitFor } from "../test/harness/wait.ts";
import { isDatabaseUnavailable } from "./failures.ts";
import { createPool } from "./pool.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

test("lost connection fails only the transaction that was using it", async () => {
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

// Only for the harness's own server, whose processes can be stopped from here.
test.skipIf(process.env.TEST_DATABASE_URL)(
  "frozen Postgres delays statements up to a timeout, and the pool recovers",
  async () => {
    const db = createPool(database.url, { connectionsMax: 2, responseMsMax: 300, connectMsMax: 2000 });
    const pidOf = async (client: { query: typeof db.query }): Promise<number> =>
      (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid ?? 0;
    const tx = await db.connect();
    const [inTransaction, alone] = [await pidOf(tx), await pidOf(db)];
    await tx.query("begin");
    expect(inTransaction).not.toBe(alone);
    // The process that serves the connection is stopped, as on a host that hangs.
    for (const pid of [inTransaction, alone]) process.kill(pid, "SIGSTOP");
    try {
      const failures = await Promise.all(
        [tx.query("select 1"), db.query("select 1")].map((statement) => statement.catch((error: unknown) => error)),
      );
      expect(failures.map(isDatabaseUnavailable)).toEqual([true, true]);
      tx.release(new Error("lost"));
      await waitFor("new connections", async () => (await db.query("select 1")).rowCount === 1);
    } finally {
      for (const pid of [inTransaction, alone]) process.kill(pid, "SIGCONT");
    }
    await db.end();
  },
);
