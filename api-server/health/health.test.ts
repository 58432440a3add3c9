import { expect, test } from "vitest";
import { STORE_PROBLEMS } from "../../analytics/contract.ts";
import { checkHealth, type Observation } from "./health.ts";

const observed = (changes: Partial<Observation> = {}): Observation => ({
  postgresUnavailableMs: 0,
  storeAnswers: true,
  storeEvicts: false,
  streamStalenessMs: 800,
  stalenessMs: 900,
  eventsDroppedLately: false,
  clickhouse: undefined,
  ...changes,
});
const NEVER = Number.POSITIVE_INFINITY;

test.each<{ name: string; seen: Partial<Observation>; ready: boolean; degradations: string[] }>([
  { name: "everything works", seen: {}, ready: true, degradations: [] },
  { name: "the store is unreachable", seen: { storeAnswers: false }, ready: true, degradations: ["redis_unavailable"] },
  { name: "the store evicts", seen: { storeEvicts: true }, ready: true, degradations: ["redis_eviction_enabled"] },
  { name: "events were dropped", seen: { eventsDroppedLately: true }, ready: true, degradations: ["events_dropped"] },
  ...STORE_PROBLEMS.map((problem) => ({
    name: `ClickHouse is ${problem}, which serving keys does not need`,
    seen: { clickhouse: problem },
    ready: true,
    degradations: [`clickhouse_${problem}`],
  })),
  {
    name: "no changes arrive, and Postgres answers",
    seen: { streamStalenessMs: NEVER, stalenessMs: NEVER, storeAnswers: false },
    ready: true,
    degradations: ["redis_unavailable", "propagation_delayed"],
  },
  {
    name: "one workspace lags, and Postgres has just become unreachable",
    seen: { stalenessMs: 90_000, postgresUnavailableMs: 1 },
    ready: true,
    degradations: ["postgres_unavailable", "propagation_delayed"],
  },
  {
    name: "Postgres is unreachable within the bound",
    seen: { postgresUnavailableMs: 30_000, streamStalenessMs: 30_000, stalenessMs: 30_000 },
    ready: true,
    degradations: ["postgres_unavailable"],
  },
  {
    name: "Postgres is unreachable and the data is too stale",
    seen: { postgresUnavailableMs: 5_000, streamStalenessMs: 30_001, stalenessMs: 30_001 },
    ready: false,
    degradations: ["postgres_unavailable", "propagation_delayed"],
  },
  {
    name: "Postgres is unreachable only for this replica, beyond the bound",
    seen: { postgresUnavailableMs: 30_001 },
    ready: false,
    degradations: ["postgres_unavailable"],
  },
])("api-server reports its readiness and degradations: $name", ({ seen, ready, degradations }) => {
  expect(checkHealth(observed(seen))).toEqual({ ready, degradations });
});
