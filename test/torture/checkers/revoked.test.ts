import { describe, expect, test } from "vitest";
import { aCase, aChange, anAsk, aSample, created } from "./a-case.ts";
import { checkRevoked, revocationDelays } from "./revoked.ts";

const disabled = [created(0), aChange(10, { kind: "disable" })];
const count = (recorded: Parameters<typeof aCase>[0]) => checkRevoked(aCase(recorded)).length;

describe("a key that was disabled at 10 s and is accepted", () => {
  test.each([
    {
      name: "before the process reports to have the changes of 10 s",
      samples: [aSample(40, 31)],
      askS: 41,
      violations: 0,
    },
    {
      name: "after the process reported to have the changes of 10 s",
      samples: [aSample(12, 1)],
      askS: 12.5,
      violations: 1,
    },
    {
      name: "after the bound, at a process that reports to be fresh",
      samples: [aSample(45, 1)],
      askS: 46,
      violations: 1,
    },
    {
      name: "after the bound, at a process that reports to be stale",
      samples: [aSample(45, 36)],
      askS: 46,
      violations: 0,
    },
    { name: "at a process without a report", samples: [], askS: 60, violations: 0 },
    {
      name: "by another life of the process than the one that reported",
      samples: [aSample(12, 1, { incarnation: 2 })],
      askS: 12.5,
      violations: 0,
    },
    { name: "when its report came after the verification", samples: [aSample(13, 1)], askS: 12.5, violations: 0 },
  ])(
    "revocation checker finds $violations violations when a revoked key is accepted $name",
    ({ samples, askS, violations }) => {
      expect(count({ changes: disabled, samples, asks: [anAsk(askS, "valid")] })).toBe(violations);
    },
  );

  test("revocation checker rejects acceptance by the acknowledging api-server", () => {
    const asks = [anAsk(10.1, "valid", { process: "api-1" })];
    expect(count({ changes: disabled, asks })).toBe(1);
  });

  test("revocation checker permits acceptance by an api-server that has not reported the revocation", () => {
    expect(count({ changes: disabled, asks: [anAsk(10.1, "valid", { process: "api-2" })] })).toBe(0);
  });
});

describe("a role or permission that grants to many keys", () => {
  const through = "role main shift-0";
  const role = (seconds: number, kind: "permit" | "forbid") =>
    aChange(seconds, { kind }, { subject: "role", key: through });
  const changes = [aChange(0, { kind: "create", permitted: false }), role(0, "permit"), role(10, "forbid")];
  const ask = (seconds: number) => anAsk(seconds, "valid", { needs: "own", through });

  test("revocation checker rejects acceptance of a reduced role's keys once the process reports the change", () => {
    expect(count({ changes, samples: [aSample(9, 1)], asks: [ask(9.5)] })).toBe(0);
    expect(count({ changes, samples: [aSample(12, 1)], asks: [ask(12.5)] })).toBe(1);
  });

  test("revocation checker permits acceptance through a direct permission, but not through one that the role has lost", () => {
    const own = [created(0), ...changes.slice(1)];
    const asks = [ask(12.5), anAsk(12.5, "valid", { needs: "shared", through })];
    expect(count({ changes: own, samples: [aSample(12, 1)], asks })).toBe(1);
  });

  test("revocation checker reports the delay of a role change", () => {
    expect(revocationDelays(aCase({ changes, asks: [ask(10.51)] })).maxMs).toBe(500);
  });
});

describe("changes that revoke a key", () => {
  test.each(["disable", "expire", "delete", "purge"] as const)(
    "revocation checker recognizes %s as a revocation",
    (kind) => {
      const changes = [created(0), aChange(10, { kind })];
      expect(count({ changes, samples: [aSample(12, 1)], asks: [anAsk(12.5, "valid")] })).toBe(1);
    },
  );

  test("revocation checker considers a lost permission only if the request requires it", () => {
    const changes = [created(0), aChange(10, { kind: "forbid" })];
    const asks = [anAsk(12.5, "valid", { needs: "own" }), anAsk(12.5, "valid")];
    expect(count({ changes, samples: [aSample(12, 1)], asks })).toBe(1);
  });

  test("revocation checker treats an unanswered change as possibly failed", () => {
    const changes = [created(0), aChange(10, { kind: "disable" }, { outcome: "unknown" })];
    expect(count({ changes, samples: [aSample(12, 1)], asks: [anAsk(12.5, "valid")] })).toBe(0);
  });

  test("revocation checker permits acceptance of a reenabled key", () => {
    const changes = [...disabled, aChange(12, { kind: "enable" })];
    expect(count({ changes, samples: [aSample(13, 0.5)], asks: [anAsk(13.5, "valid")] })).toBe(0);
  });
});

test("revocation checker reports the largest delay per revocation and process", () => {
  const changes = [created(0), aChange(10, { kind: "disable" })];
  const asks = [
    anAsk(10.11, "valid"),
    anAsk(10.51, "valid"),
    anAsk(11, "refused"),
    anAsk(11, "refused", { process: "sidecar-2" }),
  ];
  expect(revocationDelays(aCase({ changes, asks }))).toEqual({ count: 2, p50Ms: 500, p99Ms: 500, maxMs: 500 });
});
