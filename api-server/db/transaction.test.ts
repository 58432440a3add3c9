import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Projection } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { inTransaction } from "./transaction.ts";

let database: TestDatabase;
let db: ReturnType<typeof createPool>;
const dropped: RecordRef[] = [];
const deps = () => ({
  db,
  wakeRelay: () => undefined,
  projection: { drop: (refs) => dropped.push(...refs) } as Partial<Projection> as Projection,
});

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 4 });
  await db.query("insert into workspaces (id, name, created_at) values ('ws_1', 'one', 0)");
  await db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_1', 'ws_1', 'ks_1', 'a', 0), ('api_2', 'ws_1', 'ks_2', 'b', 0)",
  );
});
afterAll(async () => {
  await db.end();
  await database.drop();
});
beforeEach(() => {
  dropped.length = 0;
});

const rename = (id: string, name: string) => (tx: { query(text: string, values: unknown[]): Promise<unknown> }) =>
  tx.query("update apis set name = $2 where id = $1", [id, name]);
const nameOf = async (id: string) => (await db.query("select name from apis where id = $1", [id])).rows[0]?.name;

test("transaction invalidates, after its commit, exactly the cached records that the triggers list", async () => {
  await db.query("delete from outbox");
  await rename("api_2", "by someone else")(db);
  const result = await inTransaction(deps(), async (tx) => {
    await rename("api_1", "first")(tx);
    await rename("api_1", "second")(tx);
    expect(dropped).toEqual([]);
    return "done";
  });
  expect(result).toBe("done");
  expect(dropped).toEqual([{ workspaceId: "ws_1", kind: "api", id: "api_1" }]);
  expect(await nameOf("api_1")).toBe("second");
});

test("transaction that changes too many records invalidates the whole cache", async () => {
  let forgotten = 0;
  const forgetAll = () => {
    forgotten += 1;
  };
  const forgetting = { drop: () => expect.unreachable(), forgetAll };
  await inTransaction({ db, wakeRelay: () => undefined, projection: forgetting }, async (tx) => {
    await tx.query(
      `insert into keys (id, workspace_id, api_id, hash, start, created_at)
       select 'key_' || n, 'ws_1', 'api_1', 'h' || n, 's', 1 from generate_series(1, 3000) as n`,
    );
    await tx.query("delete from keys");
  });
  expect(forgotten).toBe(1);
});

test("transaction that throws is rolled back and invalidates nothing", async () => {
  const failed = inTransaction(deps(), async (tx) => {
    await rename("api_1", "undone")(tx);
    throw new Error("no");
  });
  await expect(failed).rejects.toThrow("no");
  expect(await nameOf("api_1")).not.toBe("undone");
  expect(dropped).toEqual([]);
});

test("transaction cannot commit after an error that its work swallowed", async () => {
  const failed = inTransaction(deps(), async (tx) => {
    await rename("api_1", "half")(tx);
    await tx.query("select 1 / 0").catch(() => {});
  });
  await expect(failed).rejects.toThrow(/aborted/);
  expect(await nameOf("api_1")).not.toBe("half");
});

test("transaction that loses a deadlock is retried", async () => {
  const attempts = { one: 0, other: 0 };
  let meet = () => {};
  let waiting = 0;
  const bothHoldOne = new Promise<void>((resolve) => {
    meet = () => {
      waiting += 1;
      if (waiting === 2) resolve();
    };
  });
  const lockBoth = (name: "one" | "other", first: string, second: string) =>
    inTransaction(deps(), async (tx) => {
      attempts[name] += 1;
      await rename(first, name)(tx);
      meet();
      await bothHoldOne;
      await rename(second, name)(tx);
    });
  await Promise.all([lockBoth("one", "api_1", "api_2"), lockBoth("other", "api_2", "api_1")]);
  // Postgres ends one of the two, and on a slow machine now and then both.
  expect(attempts.one + attempts.other).toBeGreaterThan(2);
  expect(await nameOf("api_1")).toBe(await nameOf("api_2"));
});

test("transaction is retried with a new id if the generated id already exists", async () => {
  const ids = ["api_1", "api_1", "api_3"];
  await inTransaction(deps(), (tx) => {
    const id = ids.shift();
    return tx.query(
      "insert into apis (id, workspace_id, key_space_id, name, created_at) values ($1, 'ws_1', $1, 'n', 0)",
      [id],
    );
  });
  expect(await nameOf("api_3")).toBe("n");
});

describe("values are returned with their types", () => {
  test("Postgres values of type bigint are returned as numbers, those of type date as strings", async () => {
    const { rows } = await db.query(
      "select 9007199254740991::bigint as big, '{1,2}'::bigint[] as bigs, '{}'::bigint[] as none, '2026-02-28'::date as day",
    );
    expect(rows[0]).toEqual({ big: Number.MAX_SAFE_INTEGER, bigs: [1, 2], none: [], day: "2026-02-28" });
  });
});
