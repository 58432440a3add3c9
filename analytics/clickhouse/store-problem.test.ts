import { ClickHouseError } from "@clickhouse/client";
import { expect, test } from "vitest";
import { evaluateProblem, meaningOf, type Seen } from "./store-problem.ts";

const anError = (type: string, message = "refused") => new ClickHouseError({ code: "1", type, message });

test.each([
  { error: new Error("connect ECONNREFUSED"), problem: "unavailable", forAll: true },
  { error: new Error("Timeout error."), problem: "slow", forAll: true },
  { error: anError("TIMEOUT_EXCEEDED"), problem: "slow", forAll: false },
  { error: anError("MEMORY_LIMIT_EXCEEDED"), problem: "overloaded", forAll: false },
  { error: anError("TOO_MANY_PARTS"), problem: "overloaded", forAll: true },
  {
    error: anError("CANNOT_WRITE_TO_FILE_DESCRIPTOR", "errno: 28: No space left on device"),
    problem: "disk_full",
    forAll: true,
  },
  { error: anError("VIOLATED_CONSTRAINT"), problem: "access_denied", forAll: false },
  { error: anError("constructor"), problem: "access_denied", forAll: false },
])(
  "ClickHouse error $error.message ($error.type) is read as $problem (for all workspaces: $forAll)",
  ({ error, ...meaning }) => {
    expect(meaningOf(error)).toEqual(meaning);
  },
);

const seen = (changes: Partial<Seen> = {}): Seen => ({
  noResponse: undefined,
  failures: [],
  insertingMs: 0,
  ...changes,
});

test.each([
  { name: "nothing is wrong", of: seen({ insertingMs: 10_000 }), problem: undefined },
  { name: "it does not answer", of: seen({ noResponse: "unavailable", insertingMs: 60_000 }), problem: "unavailable" },
  { name: "an insert runs for long", of: seen({ insertingMs: 10_001 }), problem: "slow" },
  {
    name: "an insert failed, and was not tried again yet",
    of: seen({ failures: [{ problem: "disk_full", agoMs: 90_000 }] }),
    problem: "disk_full",
  },
  {
    name: "an insert failed, and others try it again",
    of: seen({ failures: [{ problem: "disk_full", agoMs: 90_001 }] }),
    problem: undefined,
  },
  {
    name: "a connection was lost, and it answers again",
    of: seen({ failures: [{ problem: "unavailable", agoMs: 5 }] }),
    problem: undefined,
  },
  {
    name: "of several failures the worst counts",
    of: seen({
      failures: [
        { problem: "slow", agoMs: 1 },
        { problem: "access_denied", agoMs: 2 },
        { problem: "overloaded", agoMs: 3 },
      ],
    }),
    problem: "access_denied",
  },
])("ClickHouse in the state $name has the problem $problem", ({ of, problem }) =>
  expect(evaluateProblem(of)).toBe(problem),
);
