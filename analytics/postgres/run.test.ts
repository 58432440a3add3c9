import { randomBytes } from "node:crypto";
import type pg from "pg";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { migrate } from "../../api-server/db/migrate.ts";
import { createPool } from "../../postgres/pool.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { type QueryLimits, QueryRejected, type QueryResponse, type QueryScope, type ResultType } from "../contract.ts";
import { KEY_TOTALS } from "../dialect/postgres/key-totals.ts";
import { type ColumnType, PUBLIC_TABLES } from "../tables.ts";
import { partitionAt } from "./partition-plan.ts";
import { createPartition } from "./partitions.ts";
import { openPostgresReader, type PostgresReader } from "./run.ts";
import { STORED_TABLES } from "./tables.ts";

const NOW_MS = Date.UTC(2042, 5, 15, 12);
const LIMITS: QueryLimits = {
  rowsMax: 1_000,
  timeoutMs: 10_000,
  memoryBytesMax: 1_000_000_000,
  answerBytesMax: 4 * 1024 * 1024,
};

const POSTGRES_TYPES: Readonly<Record<ColumnType, string>> = {
  String: "text C",
  Int64: "bigint",
  Float64: "double precision",
  Bool: "boolean",
  DateTime: "timestamp without time zone",
  Date: "date",
  "Array(String)": "text[] C",
};

let database: TestDatabase;
let db: Pool;
let reader: PostgresReader;
const logged: object[] = [];
const log = { warn: (about: object) => void logged.push(about) };

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  await makePartitions(["2042-05-31", "2042-06-01", "2042-06-10", "2042-06-15"]);
  const day = (date: string) => Date.parse(date);
  await verification({ id: "old", at: day("2042-06-01") });
  await verification({ id: "edge", at: day("2042-06-10") + 5 });
  await verification({ id: "now", at: NOW_MS, outcome: "RATE_LIMITED", tags: ['a"b', "c,d", "NULL", "", "é\\"] });
  await verification({ id: "second api", at: NOW_MS, keySpaceId: "ks_2" });
  await verification({ id: "theirs", at: NOW_MS, workspaceId: "ws_b" });
  for (const [id, workspaceId, namespaceId] of [
    ["l1", "ws_a", "rl_1"],
    ["l2", "ws_a", "rl_2"],
    ["l3", "ws_b", "rl_3"],
  ]) {
    await db.query(
      `insert into ratelimit_events (day, id, request_id, time, workspace_id, namespace_id, identifier, passed, max_count, remaining, reset_at, cost)
       values ('2042-06-15', $1, $1, $2, $3, $4, 'user', true, 10, 9, $2, 1)`,
      [id, NOW_MS, workspaceId, namespaceId],
    );
  }
  reader = openPostgresReader({ databaseUrl: database.url, log, waitMsMax: 300 });
});

afterAll(async () => {
  await reader.close();
  await db.end();
  await database.drop();
});

async function makePartitions(dates: readonly string[]): Promise<void> {
  for (const table of STORED_TABLES) {
    for (const date of dates) await createPartition(db, partitionAt(table, Date.parse(date)));
  }
}

async function verification(given: {
  id: string;
  at: number;
  workspaceId?: string;
  keySpaceId?: string;
  outcome?: string;
  tags?: string[];
}): Promise<void> {
  const { id, at, workspaceId = "ws_a", keySpaceId = "ks_1", outcome = "VALID", tags = [] } = given;
  await db.query(
    `insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id, outcome, tags, source)
     values (to_timestamp($2 / 1000.0) at time zone 'UTC', $1, $1, $2, $3, $4, 'api', 'key', $5, $6, 'api')`,
    [id, at, workspaceId, keySpaceId, outcome, tags],
  );
}

const visibleFrom = (ms: number): QueryScope["visibleFrom"] => ({ raw: ms, minute: ms, hour: ms, day: ms, month: ms });

const aScope = (given: Partial<QueryScope> = {}): QueryScope => ({
  workspaceId: "ws_a",
  within: undefined,
  nowMs: NOW_MS,
  visibleFrom: visibleFrom(Date.UTC(2042, 5, 10) + 5),
  ...given,
});

interface Asking {
  readonly values?: readonly unknown[];
  readonly types?: readonly ResultType[];
  readonly names?: readonly string[];
  readonly scope?: Partial<QueryScope>;
  readonly limits?: Partial<QueryLimits>;
  readonly signal?: AbortSignal;
  readonly of?: PostgresReader;
}

function ask(
  text: string,
  { values = [], types = ["String"], names, scope, limits, signal, of = reader }: Asking = {},
) {
  const columns = types.map((type, index) => ({ type, name: names?.[index] ?? `c${index + 1}` }));
  return of.query({ text, values, columns }, { scope: aScope(scope), limits: { ...LIMITS, ...limits }, signal });
}

const valuesOf = ({ rowsJson }: QueryResponse): unknown[] =>
  (JSON.parse(rowsJson) as Record<string, unknown>[]).map((row) => Object.values(row)[0]);

async function refusalOf(asked: Promise<unknown>): Promise<{ reason: string; detail: string }> {
  const error = await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof QueryRejected)) throw new Error("was not refused", { cause: error });
  return { reason: error.reason, detail: error.message };
}

const REQUESTS = "select request_id from analytics.key_verifications_v1 order by 1";

describe("the visible rows of a query", () => {
  test.each<[string, Partial<QueryScope>, string[]]>([
    ["its workspace's rows from the bound on", {}, ["edge", "now", "second api"]],
    [
      "nothing that is one millisecond older",
      { visibleFrom: visibleFrom(Date.UTC(2042, 5, 10) + 6) },
      ["now", "second api"],
    ],
    ["its key spaces only", { within: ["ks_2", "ks_none"] }, ["second api"]],
    ["nothing without any key space", { within: [] }, []],
    ["another workspace's rows in its own scope", { workspaceId: "ws_b" }, ["theirs"]],
    ["nothing of a key space of another workspace", { workspaceId: "ws_b", within: ["ks_2"] }, []],
    ["nothing in a workspace that has none", { workspaceId: `ws'"\\{}\n` }, []],
  ])("analytics query on Postgres reads only %s", async (_, scope, expected) => {
    expect(valuesOf(await ask(REQUESTS, { scope }))).toEqual(expected);
  });

  test("analytics query of rate limits is restricted by namespace", async () => {
    const text = "select request_id from analytics.ratelimits_v1 order by 1";
    expect(valuesOf(await ask(text))).toEqual(["l1", "l2"]);
    expect(valuesOf(await ask(text, { scope: { within: ["rl_2", "rl_3"] } }))).toEqual(["l2"]);
  });

  test.each<[string, string[]]>([
    ["minute", ["2042-06-10 10:20:00", "2042-06-15 00:00:00"]],
    ["hour", ["2042-06-10 10:00:00", "2042-06-15 00:00:00"]],
    ["day", ["2042-06-10", "2042-06-15"]],
    ["month", ["2042-06-01"]],
  ])("analytics buckets per %s start with the bucket that contains the retention bound", async (bucket, expected) => {
    for (const workspaceId of ["ws_a", "ws_b"]) {
      for (const at of [
        "2042-05-31 23:59:00",
        "2042-06-10 09:59:00",
        "2042-06-10 10:19:00",
        "2042-06-10 10:20:00",
        "2042-06-15",
      ]) {
        await db.query(
          `insert into verification_counts_${bucket} values (date_trunc($1, $2::timestamp), 1, 1, $3, 'ks_1', '', '', '', '', '', '', '{}', '') on conflict do nothing`,
          [bucket, at, workspaceId],
        );
        await db.query(
          `insert into ratelimit_counts_${bucket} values (date_trunc($1, $2::timestamp), 1, 1, 1, 1, $3, 'rl_1', 'user', '') on conflict do nothing`,
          [bucket, at, workspaceId],
        );
      }
    }
    const bound = Date.UTC(2042, 5, 10, 10, 20, 30);
    for (const [table, own] of [
      ["key_verifications", "ks_1"],
      ["ratelimits", "rl_1"],
    ] as const) {
      const text = `select time::text from analytics.${table}_per_${bucket}_v1 where time > '2042-01-01' order by 1`;
      const [inside = {}, other = {}] = [own, "other"].map((id) => ({
        within: [id],
        visibleFrom: { ...visibleFrom(Date.UTC(2100, 0)), [bucket]: bound },
      }));
      expect(valuesOf(await ask(text, { scope: inside }))).toEqual(expected);
      expect(valuesOf(await ask(text, { scope: other }))).toEqual([]);
      expect(valuesOf(await ask(text, { scope: { visibleFrom: visibleFrom(bound) } }))).toEqual(expected);
    }
  });

  test("analytics totals per key have the same time bound as daily buckets", async () => {
    for (const [date, workspaceId] of [
      ["2042-06-01", "ws_a"],
      ["2042-06-10", "ws_a"],
      ["2042-06-10", "ws_b"],
    ]) {
      await db.query("insert into verification_key_totals_day values ($1, 1, 1, $2, 'ks_1', 'key_1')", [
        date,
        workspaceId,
      ]);
    }
    const text = `select workspace_id || ' ' || time from analytics.${KEY_TOTALS}`;
    const bounds = visibleFrom(Date.UTC(2042, 5, 10, 23));
    expect(valuesOf(await ask(text, { scope: { within: ["ks_1"], visibleFrom: bounds } }))).toEqual([
      "ws_a 2042-06-10",
    ]);
    expect(valuesOf(await ask(text, { scope: { within: ["ks_2"], visibleFrom: bounds } }))).toEqual([]);
  });

  test("analytics views have the columns of the public tables in order and type", async () => {
    const { rows } = await db.query<{ name: string; columns: string }>(
      `select c.relname as name, string_agg(a.attname || ' ' || format_type(a.atttypid, null) || coalesce(' ' || co.collname, ''), ', ' order by a.attnum) as columns
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
         left join pg_collation co on co.oid = a.attcollation
        where c.relnamespace = 'analytics'::regnamespace and c.relkind = 'v' group by 1`,
    );
    const described = PUBLIC_TABLES.map(({ name, columns }): [string, string[]] => [
      name,
      Object.entries(columns).map(([column, type]) => `${column} ${POSTGRES_TYPES[type]}`),
    ]);
    const expected = Object.fromEntries(described.map(([name, columns]) => [name, columns.join(", ")]));
    // Has a subset of the columns of the daily table.
    const { [KEY_TOTALS]: totals = "", ...views } = Object.fromEntries(
      rows.map(({ name, columns }) => [name, columns]),
    );
    expect(views).toEqual(expected);
    expect(expected.key_verifications_per_day_v1?.split(", ")).toEqual(expect.arrayContaining(totals.split(", ")));
  });

  test.each([
    ["key_verifications_v1", "time >= 2287612800000 and time < 2287616400000", /_pkey/],
    ["ratelimits_v1", "time >= 2287612800000 and time < 2287616400000", /_pkey/],
    ["key_verifications_per_minute_v1", "time >= timestamp '2042-06-15' and time < timestamp '2042-06-16'", /_pkey/],
    ["ratelimits_per_day_v1", "time >= date '2042-06-29' and time < date '2042-06-30'", /_pkey/],
  ])(
    "analytics query uses the time bounds of the caller and of the view in the index of %s",
    async (view, bounds, index) => {
      await ask("select 'prepared'");
      const client = await db.connect();
      try {
        await client.query("begin; set local role postern_analytics; set local enable_seqscan = off");
        const text = `explain (costs off) select count(*) from analytics.${view} where ${bounds}`;
        const { rows } = await client.query<Record<"QUERY PLAN", string>>(text);
        const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
        expect(plan).toMatch(index);
        expect(plan).toMatch(/Index Cond: .*workspace_id = .*"?time"? >= \(InitPlan.*"?time"? >= '.*"?time"? < '/);
      } finally {
        await client.query("rollback");
        client.release();
      }
    },
  );

  test("analytics query scope ends before the next query on the connection", async () => {
    await ask(REQUESTS, { scope: { workspaceId: "ws_b" } });
    const { rows } = await asRole("select count(*) as n from analytics.key_verifications_v1");
    expect(rows).toEqual([{ n: 0 }]);
  });

  test("analytics query that forges its scope without a valid seal cannot read rows of other workspaces", async () => {
    const forged = JSON.stringify({ workspaceId: "ws_b", within: null, visibleFrom: { raw: 0 } });
    const before = `with s as materialized (select set_config('postern.analytics_scope', repeat('0', 64) || '${forged}', true)) select request_id from s, analytics.key_verifications_v1`;
    expect(valuesOf(await ask(before)).includes("theirs")).toBe(false);
  });

  test("analytics query whose scope has the seal of another transaction returns no rows", async () => {
    const client = await db.connect();
    try {
      await client.query("begin");
      await client.query(`select analytics.bind_scope('ws_b', null, '{"raw":0}')`);
      const { rows } = await client.query<{ sealed: string }>(
        "select current_setting('postern.analytics_scope') as sealed",
      );
      expect((await client.query(REQUESTS)).rows).toEqual([{ request_id: "theirs" }]);
      await client.query("commit; begin");
      await client.query("select set_config('postern.analytics_scope', $1, true)", [rows[0]?.sealed]);
      expect((await client.query(REQUESTS)).rows).toEqual([]);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });
});

/** Runs statements as the reader role, without a bound scope, in a transaction that is rolled back. */
async function asRole(text: string): Promise<pg.QueryResult> {
  await ask("select 'prepared'");
  const client = await db.connect();
  try {
    await client.query("begin; set local role postern_analytics");
    return await client.query(text);
  } finally {
    await client.query("rollback");
    client.release();
  }
}

describe("permissions of the query role", () => {
  test.each([
    "select hash from public.keys",
    "select key from analytics.seal_key",
    "select analytics.seal('x')",
    `select analytics.bind_scope('ws_b', null, '{"raw":0}')`,
    "select api_id from public.verification_events",
    "select * from public.verification_events",
    "select time from public.verification_events_20420615",
    "select identity_id from public.verification_counts_day",
    "select dims from public.verification_counts_day",
    "select count from public.verification_totals_hour",
    "select events from public.rollup_queue",
    "insert into public.verification_events (id) values ('x')",
    "delete from analytics.key_verifications_v1",
    "select pg_read_file('/etc/passwd')",
    "select pg_ls_dir('/')",
    "select pg_sleep(0)",
    "select pg_sleep_for('0 s')",
    "select lo_creat(1)",
    "select lo_get(1)",
    "select query_to_xml('select 1', true, true, '')",
    "select ts_stat('select 1')",
    "copy (select 1) to program 'true'",
    "create table public.mine (a int)",
    "create schema mine",
    "set temp_file_limit = -1",
  ])("analytics query role may not use %s", async (text) => {
    await expect(asRole(text)).rejects.toMatchObject({ code: "42501" });
  });

  test("row-level security restricts the analytics query role even without the views", async () => {
    const text = "select request_id from public.verification_events order by 1";
    expect(valuesOf(await ask(text, { scope: { within: ["ks_2"] } }))).toEqual(["second api"]);
    expect((await asRole("select request_id from public.verification_events")).rows).toEqual([]);
    for (const { name } of STORED_TABLES.filter(({ name }) => name !== "verification_totals_hour")) {
      expect((await asRole(`select time from public.${name}`)).rows).toEqual([]);
    }
  });

  test("analytics query role does not inherit permissions of granted roles", async () => {
    const other = `reporting_${randomBytes(4).toString("hex")}`;
    await db.query(
      `create role ${other} nologin; grant usage on schema public to ${other};
       grant select on all tables in schema public to ${other}; grant ${other} to postern_analytics`,
    );
    onTestFinished(async () => void (await db.query(`drop owned by ${other}; drop role ${other}`)));
    // Partitions have no row-level security of their own.
    for (const text of [
      "select hash from keys",
      "select id from verification_events",
      "select time from verification_events_20420615",
    ]) {
      await expect(asRole(text.replace("from ", "from public."))).rejects.toMatchObject({ code: "42501" });
    }
    expect(valuesOf(await ask("select current_user::text"))).toEqual(["postern_analytics"]);
  });

  test("denied Postgres permission is logged and hidden from the caller", async () => {
    expect(await refusalOf(ask("select nextval('public.outbox_seq_seq')::text"))).toEqual({
      reason: "query",
      detail: "The query cannot be run.",
    });
    expect(logged.pop()).toMatchObject({ err: { code: "42501" } });
  });

  test("analytics query times are in UTC for any database settings", async () => {
    await db.query(`alter database "${new URL(database.url).pathname.slice(1)}" set timezone = 'Asia/Tokyo'`);
    const own = openPostgresReader({ databaseUrl: database.url, log });
    onTestFinished(() => own.close());
    expect(valuesOf(await ask("select current_setting('timezone')", { of: own }))).toEqual(["UTC"]);
  });

  test("analytics query role can run only a single read-only statement", async () => {
    expect(valuesOf(await ask("select current_setting('transaction_read_only')"))).toEqual(["on"]);
    expect((await refusalOf(ask("select 'a'; select 'b'"))).reason).toBe("query");
    expect(logged.pop()).toMatchObject({ err: { code: "42601" } });
  });

  test("Postgres roles that were granted SELECT on the event tables read the rows of all workspaces", async () => {
    await ask("select 'prepared'");
    const name = `reports_${randomBytes(4).toString("hex")}`;
    await db.query(`create role ${name}; grant select on verification_events to ${name}`);
    const client = await db.connect();
    try {
      await client.query(`begin; set local role ${name}`);
      expect((await client.query("select from verification_events")).rowCount).toBe(5);
    } finally {
      await client.query("rollback");
      await client.query(`drop owned by ${name}; drop role ${name}`);
      client.release();
    }
  });
});

describe("JSON of a value", () => {
  test.each<[string, ResultType, string]>([
    ["9223372036854775807::bigint", "Int64", "9223372036854775807"],
    ["(-9223372036854775808)::bigint", "Int64", "-9223372036854775808"],
    ["null::bigint", "Int64", "null"],
    ["true", "UInt8", "1"],
    ["false", "UInt8", "0"],
    ["1::smallint", "UInt8", "1"],
    ["true", "Bool", "true"],
    ["false", "Bool", "false"],
    ["'NaN'::float8", "Float64", "null"],
    ["'-Infinity'::float8", "Float64", "null"],
    ["0.1::float8 + 0.2", "Float64", "0.30000000000000004"],
    ["'-0'::float8", "Float64", "-0"],
    ["1e20::float8", "Float64", "100000000000000000000"],
    ["1e21::float8", "Float64", "1e21"],
    ["1e-7::float8", "Float64", "1e-7"],
    ["5::float8", "Float64", "5"],
    ["timestamp '2024-02-29 23:59:59.999'", "DateTime", '"2024-02-29T23:59:59Z"'],
    ["timestamp '2024-02-29 23:59:59'", "DateTime64(3)", '"2024-02-29T23:59:59.000Z"'],
    ["timestamp '2024-02-29 23:59:59.5'", "DateTime64(3)", '"2024-02-29T23:59:59.500Z"'],
    ["date '2024-02-29'", "Date", '"2024-02-29T00:00:00Z"'],
    [`e'"\\\\\\n\\u2028\\U0001F600'`, "String", JSON.stringify('"\\\n\u2028😀')],
    ["''", "String", '""'],
    [
      "array['a', null, 'NULL', 'b\"c', 'd\\e', '{f,g}', '', ' ']",
      "Array(String)",
      '["a",null,"NULL","b\\"c","d\\\\e","{f,g}",""," "]',
    ],
    ["'{}'::text[]", "Array(String)", "[]"],
    ["array[9223372036854775807, -1]::bigint[]", "Array(Int64)", "[9223372036854775807,-1]"],
    ["array['NaN', 1.5, 'Infinity']::float8[]", "Array(Float64)", "[null,1.5,null]"],
    ["array[true, false, null]", "Array(Bool)", "[true,false,null]"],
    ["array[date '2024-02-29']", "Array(Date)", '["2024-02-29T00:00:00Z"]'],
    ["array[timestamp '2024-02-29 12:00:00']", "Array(DateTime)", '["2024-02-29T12:00:00Z"]'],
    ["null", "Nothing", "null"],
  ])("analytics result value %s of type %s is written as %s in JSON", async (expression, type, json) => {
    expect((await ask(`select ${expression}`, { types: [type] })).rowsJson).toBe(`[{"c1":${json}}]`);
  });

  test("non-finite number in an analytics result is an error", async () => {
    expect((await refusalOf(ask("select 'VALID'", { types: ["Int64"] }))).reason).toBe("query");
    expect(logged.pop()).toMatchObject({ err: { message: expect.stringContaining("whole number") } });
    expect((await refusalOf(ask("select 1.5", { types: ["UInt8"] }))).reason).toBe("query");
    logged.pop();
  });

  test("analytics result columns can have any name, and the last of several with one name is returned", async () => {
    const response = await ask("select 1, 2, 3, 4", {
      types: ["Int64", "Int64", "Int64", "Int64"],
      names: ["__proto__", 'a"b', "count()", "count()"],
    });
    expect(response.rowsJson).toBe('[{"__proto__":1,"a\\"b":2,"count()":4}]');
    expect(response.rows).toBe(1);
  });

  test("analytics result returns tags as stored", async () => {
    const response = await ask("select tags from analytics.key_verifications_v1 where request_id = $1", {
      values: ["now"],
      types: ["Array(String)"],
    });
    expect(valuesOf(response)).toEqual([['a"b', "c,d", "NULL", "", "é\\"]]);
  });
});

describe("limits", () => {
  test("analytics query returns exactly the maximum number of rows", async () => {
    const text = "select generate_series(1, $1::int)";
    expect((await ask(text, { values: [1_000], types: ["Int64"] })).rows).toBe(1_000);
    expect((await refusalOf(ask(text, { values: [1_001], types: ["Int64"] }))).reason).toBe("rows");
  });

  test("analytics result of exactly the maximum size is returned", async () => {
    const ofBytes = (bytes: number) =>
      ask("select repeat('x', $1::int)", { values: [bytes - '[{"c1":""}]'.length], limits: { answerBytesMax: 5_000 } });
    expect((await ofBytes(5_000)).rowsJson).toHaveLength(5_000);
    expect((await refusalOf(ofBytes(5_001))).reason).toBe("memory");
  });

  test("analytics query is aborted while it reads a huge row", async () => {
    const before = process.memoryUsage().rss;
    const asked = ask("select repeat('x', 100000000)", { limits: { answerBytesMax: 1_000_000 } });
    expect(await refusalOf(asked)).toEqual({ reason: "memory", detail: "The answer is larger than its limit." });
    expect(process.memoryUsage().rss - before).toBeLessThan(90_000_000);
    expect(valuesOf(await ask(REQUESTS))).toHaveLength(3);
  });

  test("analytics query is aborted after its time limit", async () => {
    const endless = "select count(*) from generate_series(1, 1e9::bigint) a, generate_series(1, 1e9::bigint) b";
    expect(await refusalOf(ask(endless, { types: ["Int64"], limits: { timeoutMs: 100 } }))).toEqual({
      reason: "timeout",
      detail: "The query took longer than its time limit.",
    });
  });

  test("analytics query is aborted when its temporary files exceed the limit", async () => {
    const sort = "select a::text from generate_series(1, 300000) a order by a::text desc limit 1 offset 299999";
    expect((await refusalOf(ask(sort, { limits: { memoryBytesMax: 1_000_000 } }))).reason).toBe("memory");
  });

  test("analytics query fails on a value that overflows Postgres types", async () => {
    expect((await refusalOf(ask("select repeat('x', 2000000000)"))).reason).toBe("memory");
  });

  test("analytics queries of one workspace use at most two slots, and time out while waiting", async () => {
    const slow = (workspaceId: string) =>
      refusalOf(
        ask("select count(*) from generate_series(1, 1e9::bigint) a", {
          scope: { workspaceId },
          limits: { timeoutMs: 1_500 },
        }),
      );
    const running = [slow("ws_a"), slow("ws_a")];
    await expect(ask(REQUESTS)).rejects.toMatchObject({
      kind: "server_busy",
      detail: expect.stringMatching(/^The server runs as many usage queries as it can/),
      headers: { "Retry-After": "5" },
    });
    expect(valuesOf(await ask(REQUESTS, { scope: { workspaceId: "ws_b" } }))).toEqual(["theirs"]);
    expect((await Promise.all(running)).map(({ reason }) => reason)).toEqual(["timeout", "timeout"]);
    expect(valuesOf(await ask(REQUESTS))).toHaveLength(3);
  });

  test("analytics query is canceled in Postgres when its client disconnects", async () => {
    const mark = `gone_${randomBytes(4).toString("hex")}`;
    const gone = new AbortController();
    const asked = ask(`select count(*) as ${mark} from generate_series(1, 1e9::bigint) a`, { signal: gone.signal });
    const isRunning = async () =>
      ((
        await db.query(
          "select from pg_stat_activity where query like $1 and state = 'active' and pid <> pg_backend_pid()",
          [`%as ${mark} %`],
        )
      ).rowCount ?? 0) > 0;
    await waitFor("it to run", isRunning);
    gone.abort(new Error("the caller has gone"));
    await expect(asked).rejects.toThrow("the caller has gone");
    await waitFor("it to end", async () => !(await isRunning()));
  });
});

describe("error messages describe the query only", () => {
  test.each<[string, string, string]>([
    ["select (1 / 0)::text", "query", "Division by zero."],
    ["select (9223372036854775807 + 1::bigint)::text", "query", "A number is out of the range of its type."],
    ["select date '2024-02-30'::text", "query", "A text is not a date or time, or a time is out of range."],
    ["select 'secret'::bigint::text", "query", "A string cannot be converted to the requested type."],
    [`select ('a' like '\\')::text`, "query", "The pattern of a LIKE ends in its escape character."],
    ["select chr(-1)", "query", "A value is outside of what an operation of the query accepts."],
    ["select hash from public.keys", "query", "The query cannot be run."],
    ["select missing from analytics.key_verifications_v1", "query", "The query cannot be run."],
  ])("analytics query %s fails with an error that describes only the query", async (text, reason, detail) => {
    expect(await refusalOf(ask(text))).toEqual({ reason, detail });
  });

  test("analytics query fails with an unavailable error when Postgres is down", async () => {
    const away = openPostgresReader({ databaseUrl: "postgres://user:secret@127.0.0.1:1/db", log });
    onTestFinished(() => away.close());
    expect(await refusalOf(ask(REQUESTS, { of: away }))).toEqual({
      reason: "unavailable",
      detail: "The store of usage events cannot be reached.",
    });
  });
});

describe("a database user that is not a superuser", () => {
  /** Migrates an empty database as its owner, a user with these permissions. */
  async function ownedBy(rights: string): Promise<{ url: string; admin: Pool; user: string }> {
    const empty = await createEmptyDatabase();
    const admin = createPool(empty.url, { connectionsMax: 1 });
    const user = `owner_${randomBytes(4).toString("hex")}`;
    const name = new URL(empty.url).pathname.slice(1);
    await admin.query(
      `create role ${user} login password 'owner' ${rights}; alter database "${name}" owner to ${user}`,
    );
    const url = new URL(empty.url);
    [url.username, url.password] = [user, "owner"];
    await migrate(url.href);
    onTestFinished(async () => {
      await admin.end();
      await empty.drop();
    });
    return { url: url.href, admin, user };
  }

  const readerOf = (url: string): PostgresReader => {
    const made = openPostgresReader({ databaseUrl: url, log });
    onTestFinished(() => made.close());
    return made;
  };

  test("analytics setup without CREATEROLE prints the required SQL and succeeds after that SQL runs", async () => {
    await ask("select 'prepared'");
    const { url, admin, user } = await ownedBy("nocreaterole");
    const own = readerOf(url);
    const refused = await refusalOf(ask(REQUESTS, { of: own }));
    expect(refused.reason).toBe("notConfigured");
    expect(refused.detail).toContain("GRANT postern_analytics TO");
    await admin.query(`grant postern_analytics to ${user}`);
    expect(valuesOf(await ask(REQUESTS, { of: own }))).toEqual([]);
    expect(logged.at(-1)).toMatchObject({ settings: ["temp_file_limit"] });
  });
});
