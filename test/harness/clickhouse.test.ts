import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestClickhouse, startOwnClickhouse, type TestClickhouse } from "./clickhouse.ts";

let database: TestClickhouse;
let client: ClickHouseClient;

beforeAll(async () => {
  database = await createTestClickhouse();
  client = createClient({ url: database.url });
});
afterAll(async () => {
  await client?.close();
  await database?.drop();
});

async function rowsOf(query: string, params: Record<string, unknown> = {}, by = client): Promise<unknown> {
  return await (await by.query({ query, query_params: params, format: "JSONCompactEachRow" })).json();
}

test("test ClickHouse uses UTC and a separate database per caller", async () => {
  const [[version, database_, hour]] = (await rowsOf(
    "select version(), currentDatabase(), toString(toDateTime(3600))",
  )) as [[string, string, string]];
  expect(Number(version.split(".")[0])).toBeGreaterThanOrEqual(25);
  expect(new URL(database.url).pathname).toBe(`/${database_}`);
  expect(hour).toBe("1970-01-01 01:00:00");
});

test("test ClickHouse round-trips bytes, Unicode, arrays and quoted parameters", async () => {
  await client.command({
    query: "create table t (id UInt32, name String, tags Array(String)) engine = MergeTree order by id",
  });
  const values = [
    { id: 1, name: "tab\tline\nquote'back\\slash", tags: ["a'b", "ü", ""] },
    { id: 2, name: "日本 🎉 \u0000", tags: [] },
  ];
  await client.insert({ table: "t", values, format: "JSONEachRow" });
  for (const { id, name, tags } of values) {
    expect(await rowsOf("select id from t where name = {name:String}", { name })).toEqual([[id]]);
    expect(await rowsOf("select id from t where tags = {tags:Array(String)}", { tags })).toEqual([[id]]);
    expect(await rowsOf("select name, tags from t where id = {id:UInt32}", { id })).toEqual([[name, tags]]);
  }
  // The parameter is too long for a URL.
  const many = Array.from({ length: 20_000 }, (_, i) => `it's ${i}`);
  const asParts = { query_params: { many }, use_multipart_params: true, format: "JSONCompactEachRow" } as const;
  expect(
    await (await client.query({ query: "select toUInt32(length({many:Array(String)}))", ...asParts })).json(),
  ).toEqual([[20_000]]);
});

test("test ClickHouse error has code and text and does not affect later queries", async () => {
  await expect(rowsOf("select nothing_of_that_name")).rejects.toMatchObject({ code: "47", type: "UNKNOWN_IDENTIFIER" });
  await expect(rowsOf("selec")).rejects.toMatchObject({ code: "62", type: "SYNTAX_ERROR" });
  expect(await rowsOf("select 1")).toEqual([[1]]);
});

test("test ClickHouse settings for time, rows and read-only apply per query", async () => {
  const slow = "select sum(sipHash64(number)) from numbers(1000000000000)";
  const withSettings = (query: string, clickhouse_settings: Record<string, string | number>) =>
    client.query({ query, format: "JSONCompactEachRow", clickhouse_settings }).then((result) => result.json());
  await expect(withSettings(slow, { max_execution_time: 1 })).rejects.toMatchObject({ type: "TIMEOUT_EXCEEDED" });
  await expect(withSettings("select number from numbers(9)", { max_result_rows: "5" })).rejects.toMatchObject({
    type: "TOO_MANY_ROWS_OR_BYTES",
  });
  await expect(withSettings("create table no (a Int8) engine = Memory", { readonly: "1" })).rejects.toMatchObject({
    type: "READONLY",
  });
  await expect(withSettings("select 1", { no_such_setting: 1 })).rejects.toMatchObject({ type: "UNKNOWN_SETTING" });
  expect(await rowsOf("select toUInt32(count()) from numbers(9)")).toEqual([[9]]);
});

test("test ClickHouse runs queries concurrently", async () => {
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: 4 }, () => rowsOf("select sleep(1)")));
  expect(performance.now() - startedAt).toBeLessThan(3_500);
});

test("test ClickHouse rejects a wrong password", async () => {
  const url = new URL(database.url);
  url.password = "wrong";
  const other = createClient({ url: url.href });
  try {
    await expect(rowsOf("select 1", {}, other)).rejects.toMatchObject({ type: "AUTHENTICATION_FAILED" });
  } finally {
    await other.close();
  }
});

test("dedicated test ClickHouse keeps its data and address after a kill", async () => {
  const own = await startOwnClickhouse();
  const ownClient = createClient({ url: own.url });
  try {
    await ownClient.command({ query: "create table t (id UInt32) engine = MergeTree order by id" });
    await ownClient.insert({ table: "t", values: [{ id: 7 }], format: "JSONEachRow" });
    const before = own.pid;
    await own.kill();
    await expect(rowsOf("select 1", {}, ownClient)).rejects.toThrow();
    await own.restart();
    expect(own.pid).not.toBe(before);
    expect(await rowsOf("select id from t", {}, ownClient)).toEqual([[7]]);
  } finally {
    await ownClient.close();
    await own.stop();
  }
});
