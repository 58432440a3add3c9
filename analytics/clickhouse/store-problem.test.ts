import { ClickHouseError } from "@clickhouse/client";
import { expect, test } from "vitest";
import { evaluateProblem, meaningOf, type Seen } from "./store-problem.ts";

const anError = (type: string, message = "refused") => new ClickHouseError({ code: "1", type, message });

test.each([
  { error: new Error("connect ECONNREFUSED"), trouble: "unavailable", forAll: true },
  { error: new Error("Timeout error."), trouble: "slow", forAll: true },
  { error: anError("TIMEOUT_EXCEEDED"), trouble: "slow", forAll: false },
  { error: anError("MEMORY_LIMIT_EXCEEDED"), trouble: "overloaded", forAll: false },
  { error: anError("TOO_MANY_PARTS"), trouble: "overloaded", forAll: true },
  {
    error: anError("CANNOT_WRITE_TO_FILE_DESCRIPTOR", "errno: 28: No space left on device"),
    trouble: "disk_full",
    forAll: true,
  },
  { error: anError("VIOLATED_CONSTRAINT"), trouble: "access_denied", forAll: false },
  { error: anError("constructor"), trouble: "access_denied", forAll: false },
])(
  "ClickHouse error $error.message ($error.type) is read as $trouble (for all workspaces: $forAll)",
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
  { name: "nothing is wrong", of: seen({ insertingMs: 10_000 }), trouble: undefined },
  { name: "it does not answer", of: seen({ noResponse: "unavailable", insertingMs: 60_000 }), trouble: "unavailable" },
  { name: "an insert runs for long", of: seen({ insertingMs: 10_001 }), trouble: "slow" },
  {
    name: "an insert failed, and was not tried again yet",
    of: seen({ failures: [{ trouble: "disk_full", agoMs: 90_000 }] }),
    trouble: "disk_full",
  },
  {
    name: "an insert failed, and others try it again",
    of: seen({ failures: [{ trouble: "disk_full", agoMs: 90_001 }] }),
    trouble: undefined,
  },
  {
    name: "a connection was lost, and it answers again",
    of: seen({ failures: [{ trouble: "unavailable", agoMs: 5 }] }),
    trouble: undefined,
  },
  {
    name: "of several failures the worst counts",
    of: seen({
      failures: [
        { trouble: "slow", agoMs: 1 },
        { trouble: "access_denied", agoMs: 2 },
        { trouble: "overloaded", agoMs: 3 },
      ],
    }),
    trouble: "access_denied",
  },
])("ClickHouse in the state $name has the problem $trouble", ({ of, trouble: problem }) =>
  expect(evaluateProblem(of)).toBe(problem),
);
