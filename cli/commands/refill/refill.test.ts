import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRedisEdge } from "../../../edge/open.ts";
import { createTestRedis, type TestRedis } from "../../../test/harness/redis.ts";
import { type Cli, openCli } from "../../test/cli.ts";

let cli: Cli;
let redis: TestRedis;
let env: Record<string, string>;
beforeAll(async () => {
  [cli, redis] = await Promise.all([openCli(), createTestRedis()]);
  env = { REDIS_URL: redis.url, POSTERN_REDIS_PREFIX: redis.prefix.replace(/:$/, "") };
  await cli.json("workspace create --name default");
  await cli.db.query(
    `insert into apis (id, workspace_id, key_space_id, name, created_at) select 'api_1', id, 'ks_1', 'a', 1 from workspaces`,
  );
});
afterAll(async () => {
  await cli.close();
  await redis.close();
});

/** Remaining credits: 3; refill: 10 a day, last on 1 March. */
beforeEach(async () => {
  await cli.db.query("delete from keys");
  await cli.db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select 'key_1', id, 'api_1', 'hash', 's', 1 from workspaces`,
  );
  await cli.db.query(
    `insert into key_credits (key_id, workspace_id, granted, refill_amount, last_refill_on)
     select 'key_1', id, 3, 10, '2041-03-01' from workspaces`,
  );
});

const left = async (): Promise<number> =>
  (await cli.db.query("select granted - spent as n from key_credits")).rows[0].n;
const refill = (args: string, more = env) => cli.run(`refill run --data-dir /nowhere ${args}`, { env: more });

test("refill run applies each due refill only once and prints the number of keys", async () => {
  expect(await refill("--at 2041-03-02T23:59:00Z")).toEqual({
    code: 0,
    out: ["refilled 1 key due by 2041-03-02"],
    notes: [],
  });
  expect(await left()).toBe(13);
  const again = await refill("--at 2041-03-02 --json");
  expect(again.out).toEqual(['{"date":"2041-03-02","refilled":0,"failed":0}']);
  expect(await left()).toBe(13);
  expect(await cli.audit({ targetId: "key_1" })).toMatchObject([{ event: "key.update", actor: { type: "system" } }]);
});

test("refill run prints the number of failed refills and exits with 1", async () => {
  await cli.db.query("alter table key_credits add constraint unlucky check (granted < 10) not valid");
  try {
    const { code, out, notes } = await refill("--at 2041-03-02 --json");
    expect(code).toBe(1);
    expect(out).toEqual(['{"date":"2041-03-02","refilled":0,"failed":1}']);
    expect(notes.join()).toContain("1 due key could not be refilled");
  } finally {
    await cli.db.query("alter table key_credits drop constraint unlucky");
  }
  expect((await refill("--at 2041-03-02")).code).toBe(0);
  expect(await left()).toBe(13);
});

test("refill run uses the date in UTC", async () => {
  expect((await refill("--at 2041-03-01T23:30:00-01:00 --json")).out).toEqual([
    '{"date":"2041-03-02","refilled":1,"failed":0}',
  ]);
});

test("refill run accounts for spent credits that only Redis has counted", async () => {
  const edge = await openRedisEdge({
    url: redis.url,
    prefix: env.POSTERN_REDIS_PREFIX ?? "",
    clientName: "test",
  });
  try {
    const { rows } = await cli.db.query("select workspace_id, rev, granted, spent from key_credits");
    const { workspace_id: workspaceId, ...row } = rows[0];
    const ref = { workspaceId, keyId: "key_1" };
    await edge.credits.load([{ ref: ref, counter: row }]);
    const counters = edge.counters({ timeoutMs: 1000 });
    const spend = (cost: number) => counters.consume({ limits: [], credits: { ...ref, cost } });
    expect((await spend(2)).credits).toEqual({ status: "spent", remaining: 1 });
    await refill("--at 2041-03-02");
    expect(await left()).toBe(11);
    expect((await spend(11)).credits).toEqual({ status: "spent", remaining: 0 });
  } finally {
    await edge.close();
  }
});

test("refill run without the Redis of the api-servers refills no key", async () => {
  const none = await refill("--at 2041-03-02", {});
  expect(none.code).toBe(2);
  expect(none.notes.join()).toContain("set --redis-url or REDIS_URL");
  const away = await refill("--at 2041-03-02", { REDIS_URL: "redis://127.0.0.1:1" });
  expect(away).toMatchObject({ code: 1, out: [] });
  expect(away.notes).toHaveLength(1);
  expect(await left()).toBe(3);
});

test("refill run does nothing while another process refills, and says so", async () => {
  const other = await cli.db.connect();
  try {
    await other.query("select pg_advisory_lock(7053002)");
    const { code, notes } = await refill("--at 2041-03-02");
    expect(code).toBe(1);
    expect(notes).toEqual(["postern refill run: another process is running a refill; retry when it has finished"]);
    expect(await left()).toBe(3);
  } finally {
    await other.query("select pg_advisory_unlock(7053002)");
    other.release();
  }
});

test.each(["--at never", "--at 2041-02-29"])("refill run rejects %s", async (args) => {
  const { code, notes } = await refill(args);
  expect(code).toBe(2);
  expect(notes.join()).toContain("for --at: must be a time");
});
