import { expect, test } from "vitest";
import { STORE_TROUBLES } from "./analytics/contract.ts";
import { judgeHealth, type Observation } from "./health.ts";

const observed = (changes: Partial<Observation> = {}): Observation => ({
  postgresAwayMs: 0,
  storeAnswers: true,
  storeEvicts: false,
  feedStalenessMs: 800,
  stalenessMs: 900,
  eventsDroppedLately: false,
  clickhouse: undefined,
  ...changes,
});
const NEVER = Number.POSITIVE_INFINITY;

test.each<{ name: string; seen: Partial<Observation>; ready: boolean; degradations: string[] }>([
  { name: "everything works", seen: {}, ready: true, degradations: [] },
  { name: "the store is unreachable", seen: { storeAnswers: false }, ready: true, degradations: ["store-away"] },
  { name: "the store evicts", seen: { storeEvicts: true }, ready: true, degradations: ["store-evicts"] },
  { name: "events were dropped", seen: { eventsDroppedLately: true }, ready: true, degradations: ["events-dropped"] },
  ...STORE_TROUBLES.map((trouble) => ({
    name: `ClickHouse is ${trouble}, which serving keys does not need`,
    seen: { clickhouse: trouble },
    ready: true,
    degradations: [`clickhouse-${trouble}`],
  })),
  {
    name: "no changes arrive, and Postgres answers",
    seen: { feedStalenessMs: NEVER, stalenessMs: NEVER, storeAnswers: false },
    ready: true,
    degradations: ["store-away", "propagation-late"],
  },
  {
    name: "one workspace lags, and Postgres has just become unreachable",
    seen: { stalenessMs: 90_000, postgresAwayMs: 1 },
    ready: true,
    degradations: ["postgres-away", "propagation-late"],
  },
  {
    name: "Postgres is unreachable within the bound",
    seen: { postgresAwayMs: 30_000, feedStalenessMs: 30_000, stalenessMs: 30_000 },
    ready: true,
    degradations: ["postgres-away"],
  },
  {
    name: "Postgres is unreachable and the data is too stale",
    seen: { postgresAwayMs: 5_000, feedStalenessMs: 30_001, stalenessMs: 30_001 },
    ready: false,
    degradations: ["postgres-away", "propagation-late"],
  },
  {
    name: "Postgres is unreachable only for this replica, beyond the bound",
    seen: { postgresAwayMs: 30_001 },
    ready: false,
    degradations: ["postgres-away"],
  },
])("$name", ({ seen, ready, degradations }) => {
  expect(judgeHealth(observed(seen))).toEqual({ ready, degradations });
});
