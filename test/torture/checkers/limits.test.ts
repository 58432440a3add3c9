import { expect, test } from "vitest";
import type { Recorded } from "../journal.ts";
import { LIMIT } from "../load/keys.ts";
import { aCase, anAsk, anInternalError, aSample } from "./a-case.ts";
import { checkLimits } from "./limits.ts";

/** This many requests are accepted, all in one window (which starts at the fixed instant), alternately at two processes. */
function count(
  letIn: number,
  {
    faults = [],
    samples = [],
    fromS = 1,
    workspace = "main",
  }: Partial<Recorded> & { fromS?: number; workspace?: string } = {},
): number {
  const asks = Array.from({ length: letIn }, (_, n) =>
    anAsk(fromS + n / 100, "valid", { workspace, keyKind: "limited", process: `sidecar-${n % 2}` }),
  );
  return checkLimits(aCase({ asks, faults, samples })).length;
}

test("limit checker permits exactly the limit", () => {
  expect([count(LIMIT), count(LIMIT + 1)]).toEqual([0, 1]);
});

test("limit checker permits the limit in each of two windows", () => {
  expect(count(2 * LIMIT, { fromS: 5 - LIMIT / 100 })).toBe(0);
});

test("limit checker restarts counting after Redis data loss", () => {
  const faults = [anInternalError("flush-redis", 2, 2)];
  // Both processes had to notice that it was back.
  expect([count(4 * LIMIT, { faults }), count(4 * LIMIT + 1, { faults })]).toEqual([0, 1]);
});

test("limit checker counts per process while Redis is unavailable", () => {
  const faults = [anInternalError("stop-redis", 0, 2)];
  expect([count(3 * LIMIT, { faults }), count(3 * LIMIT + 1, { faults })]).toEqual([0, 1]);
});

test("limit checker allows no excess for unrelated, skipped or old faults", () => {
  expect(count(LIMIT + 1, { faults: [anInternalError("abort-postgres", 0, 2)] })).toBe(1);
  expect(count(LIMIT + 1, { faults: [anInternalError("flush-redis", 2, 2, { skipped: "busy" })] })).toBe(1);
  expect(count(LIMIT + 1, { faults: [anInternalError("flush-redis", -10, -9)] })).toBe(1);
});

test("limit checker permits local counting of a gate that reports it", () => {
  const said = (after: number, process: string) => [
    aSample(-1, 0, { process, limitFailures: 7 }),
    aSample(6, 0, { process, limitFailures: after }),
  ];
  const [one, none] = [
    [...said(8, "sidecar-0"), ...said(7, "sidecar-1")],
    [...said(7, "sidecar-0"), ...said(7, "sidecar-1")],
  ];
  const counts = (workspace: string, samples: typeof one) =>
    [LIMIT, 2 * LIMIT, 2 * LIMIT + 1].map((letIn) => count(letIn, { workspace, samples }));
  expect(counts("second", one)).toEqual([0, 0, 1]);
  expect(counts("second", none)).toEqual([0, 1, 1]);
  // The policy of `main` is to refuse.
  expect(counts("main", one)).toEqual([0, 1, 1]);
});
