import { describe, expect, test } from "vitest";
import { aCase, aChange, anAsk, aSample, created } from "./a-case.ts";
import { judgeRevoked, revocationDelays } from "./revoked.ts";

const disabled = [created(0), aChange(10, { kind: "disable" })];
const count = (recorded: Parameters<typeof aCase>[0]) => judgeRevoked(aCase(recorded)).length;

describe("a key that was disabled at 10 s and is let in", () => {
  test.each([
    { name: "before the process says that it knows of 10 s", samples: [aSample(40, 31)], askS: 41, violations: 0 },
    { name: "after the process has said that it knows of 10 s", samples: [aSample(12, 1)], askS: 12.5, violations: 1 },
    { name: "after the bound, at a process that says it is fresh", samples: [aSample(45, 1)], askS: 46, violations: 1 },
    {
      name: "after the bound, at a process that says it is stale",
      samples: [aSample(45, 36)],
      askS: 46,
      violations: 0,
    },
    { name: "at a process of which nothing is known", samples: [], askS: 60, violations: 0 },
    {
      name: "by another life of the process than the one that said that it knows",
      samples: [aSample(12, 1, { incarnation: 2 })],
      askS: 12.5,
      violations: 0,
    },
    { name: "where what it said came after the question", samples: [aSample(13, 1)], askS: 12.5, violations: 0 },
  ])("$name: $violations", ({ samples, askS, violations }) => {
    expect(count({ changes: disabled, samples, asks: [anAsk(askS, "valid")] })).toBe(violations);
  });

  test("by the api-server that had acknowledged it: a violation at once", () => {
    const asks = [anAsk(10.1, "valid", { process: "api-1" })];
    expect(count({ changes: disabled, asks })).toBe(1);
  });

  test("by another api-server, which says nothing: none", () => {
    expect(count({ changes: disabled, asks: [anAsk(10.1, "valid", { process: "api-2" })] })).toBe(0);
  });
});

describe("what grants a permission to many keys", () => {
  const through = "role main shift-0";
  const role = (seconds: number, kind: "permit" | "forbid") =>
    aChange(seconds, { kind }, { subject: "role", key: through });
  const changes = [aChange(0, { kind: "create", permitted: false }), role(0, "permit"), role(10, "forbid")];
  const ask = (seconds: number) => anAsk(seconds, "valid", { needs: "own", through });

  test("a role that no longer does lets nobody in, once that is known", () => {
    expect(count({ changes, samples: [aSample(9, 1)], asks: [ask(9.5)] })).toBe(0);
    expect(count({ changes, samples: [aSample(12, 1)], asks: [ask(12.5)] })).toBe(1);
  });

  test("a key that holds it itself is let in all the same, but not where it is asked for what all hold", () => {
    const own = [created(0), ...changes.slice(1)];
    const asks = [ask(12.5), anAsk(12.5, "valid", { needs: "shared", through })];
    expect(count({ changes: own, samples: [aSample(12, 1)], asks })).toBe(1);
  });

  test("its delay is told too", () => {
    expect(revocationDelays(aCase({ changes, asks: [ask(10.51)] })).maxMs).toBe(500);
  });
});

describe("what takes a key away", () => {
  test.each(["disable", "expire", "delete", "purge"] as const)("%s", (kind) => {
    const changes = [created(0), aChange(10, { kind })];
    expect(count({ changes, samples: [aSample(12, 1)], asks: [anAsk(12.5, "valid")] })).toBe(1);
  });

  test("a permission counts where it is asked for", () => {
    const changes = [created(0), aChange(10, { kind: "forbid" })];
    const asks = [anAsk(12.5, "valid", { needs: "own" }), anAsk(12.5, "valid")];
    expect(count({ changes, samples: [aSample(12, 1)], asks })).toBe(1);
  });

  test("a change without an answer may not have happened", () => {
    const changes = [created(0), aChange(10, { kind: "disable" }, { outcome: "unknown" })];
    expect(count({ changes, samples: [aSample(12, 1)], asks: [anAsk(12.5, "valid")] })).toBe(0);
  });

  test("a key that is good again may be let in", () => {
    const changes = [...disabled, aChange(12, { kind: "enable" })];
    expect(count({ changes, samples: [aSample(13, 0.5)], asks: [anAsk(13.5, "valid")] })).toBe(0);
  });
});

test("the delays are the latest for each revocation and process, and 0 where it was refused at once", () => {
  const changes = [created(0), aChange(10, { kind: "disable" })];
  const asks = [
    anAsk(10.11, "valid"),
    anAsk(10.51, "valid"),
    anAsk(11, "refused"),
    anAsk(11, "refused", { process: "sidecar-2" }),
  ];
  expect(revocationDelays(aCase({ changes, asks }))).toEqual({ count: 2, p50Ms: 500, p99Ms: 500, maxMs: 500 });
});
