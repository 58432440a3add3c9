import { expect, test } from "vitest";
import { aCase, aChange, aGrant } from "./a-case.ts";
import { judgeAudit } from "./audit.ts";

test.each([
  { outcome: "acknowledged", rows: 0, violations: 1 },
  { outcome: "acknowledged", rows: 1, violations: 0 },
  { outcome: "acknowledged", rows: 2, violations: 1 },
  { outcome: "unknown", rows: 0, violations: 0 },
  { outcome: "unknown", rows: 1, violations: 0 },
  { outcome: "unknown", rows: 2, violations: 1 },
  { outcome: "refused", rows: 1, violations: 1 },
] as const)("$outcome with $rows rows: $violations", ({ outcome, rows, violations }) => {
  const entries = [aChange(1, { kind: "disable" }, { outcome }), aGrant(2, 5, { outcome })] as const;
  for (const entry of entries) {
    const audit = rows === 0 ? [] : [{ id: entry.id, event: "key.update", count: rows }];
    const recorded = entry.type === "change" ? { changes: [entry] } : { grants: [entry] };
    expect(judgeAudit(aCase(recorded, { audit }))).toHaveLength(violations);
  }
});

test("a row of another event does not count, and neither does one of a call that was not sent", () => {
  const forbidden = aChange(1, { kind: "forbid" });
  const audit = [
    { id: forbidden.id, event: "key.update", count: 1 },
    { id: "torture/client-1/none", event: "key.update", count: 1 },
  ];
  expect(judgeAudit(aCase({ changes: [forbidden] }, { audit }))).toHaveLength(2);
});
