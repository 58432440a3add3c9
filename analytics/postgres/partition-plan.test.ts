import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../core/utc-date.ts";
import { DEFAULT_RETENTION } from "../retention.ts";
import { partitionAt, planPartitions } from "./partition-plan.ts";
import { STORED_TABLES } from "./tables.ts";

/** 15 minutes before a month begins. */
const NOW_MS = Date.UTC(2042, 1, 28, 23, 45);
const plan = (names: readonly string[], nowMs = NOW_MS, retention = DEFAULT_RETENTION) =>
  planPartitions(names, { nowMs, retention });
const tableOf = (name: string) => {
  const found = STORED_TABLES.find((table) => table.name === name);
  if (found === undefined) throw new Error(`no table ${name}`);
  return found;
};

test("analytics partitions exist for yesterday through the next two days and their months", () => {
  const { create, drop } = plan([]);
  const of = (table: string) =>
    create.filter(({ name }) => name.startsWith(`${table}_2`)).map(({ name, from, to }) => [name, from, to]);
  expect(of("verification_events")).toEqual([
    ["verification_events_20420227", "2042-02-27", "2042-02-28"],
    ["verification_events_20420228", "2042-02-28", "2042-03-01"],
    ["verification_events_20420301", "2042-03-01", "2042-03-02"],
    ["verification_events_20420302", "2042-03-02", "2042-03-03"],
  ]);
  expect(of("ratelimit_counts_day")).toEqual([
    ["ratelimit_counts_day_204202", "2042-02-01", "2042-03-01"],
    ["ratelimit_counts_day_204203", "2042-03-01", "2042-04-01"],
  ]);
  expect(new Set(create.map(({ table }) => table.name)).size).toBe(STORED_TABLES.length);
  expect(drop).toEqual([]);
});

test("existing analytics partition is not created again", () => {
  const names = plan([]).create.map(({ name }) => name);
  expect(plan(names)).toEqual({ create: [], drop: [] });
});

describe("a partition is dropped after its retention", () => {
  test.each([
    { table: "verification_events", days: 30 },
    { table: "verification_counts_minute", days: 30 },
    { table: "verification_counts_month", days: 30 },
    { table: "verification_totals_hour", days: 30 },
    { table: "verification_key_totals_day", days: 30 },
    { table: "ratelimit_events", days: 30 },
    { table: "ratelimit_counts_minute", days: 7 },
    { table: "ratelimit_counts_hour", days: 30 },
    { table: "ratelimit_counts_day", days: 100 },
    { table: "ratelimit_counts_month", days: 1095 },
  ])("analytics partitions of $table are dropped after $days days", ({ table, days }) => {
    const partition = partitionAt(tableOf(table), NOW_MS);
    const endMs = Date.parse(partition.to);
    expect(plan([partition.name], endMs + days * DAY_MS - 1).drop).toEqual([]);
    expect(plan([partition.name], endMs + days * DAY_MS).drop).toEqual([partition]);
  });

  test("longer retention of one kind of usage keeps only the partitions of that kind", () => {
    const names = ["verification_events_20410101", "ratelimit_events_20410101"];
    const retention = { ...DEFAULT_RETENTION, verifications: 1000 };
    expect(plan(names, NOW_MS, retention).drop.map(({ name }) => name)).toEqual(["ratelimit_events_20410101"]);
  });
});

test("partition maintenance ignores foreign tables", () => {
  const names = [
    "verification_events_2041",
    "verification_events_20411301",
    "verification_counts_day_20410101",
    "verification_events_20410101_old",
    "events_20410101",
    "verification_events",
  ];
  expect(plan(names).drop).toEqual([]);
});
