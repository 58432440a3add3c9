import { expect, test } from "vitest";
import { aCase, aChange, aGrant } from "./a-case.ts";
import { checkAudit } from "./audit.ts";

test.each([
  { outcome: "acknowledged", rows: 0, violations: 1 },
  { outcome: "acknowledged", rows: 1, violations: 0 },
  { outcome: "acknowledged", rows: 2, violations: 1 },
  { outcome: "unknown", rows: 0, violations: 0 },
  { outcome: "unknown", rows: 1, violations: 0 },
  { outcome: "unknown", rows: 2, violations: 1 },
  { outcome: "refused", rows: 1, violations: 1 },
] as const)(
  "audit checker finds $violations violations for a call with outcome $outcome and $rows audit rows",
  ({ outcome, rows, violations }) => {
    const entries = [aChange(1, { kind: "disable" }, { outcome }), aGrant(2, 5, { outcome })] as const;
    for (const entry of entries) {
      const audit = rows === 0 ? [] : [{ id: entry.id, event: "key.update", count: rows }];
      const recorded = entry.type === "change" ? { changes: [entry] } : { grants: [entry] };
      expect(checkAudit(aCase(recorded, { audit }))).toHaveLength(violations);
    }
  },
);

test("audit checker has separate events for roles and permissions", () => {
  const entries = [
    aChange(1, { kind: "permit" }, { subject: "role" }),
    aChange(2, { kind: "forbid" }, { subject: "role" }),
    aChange(3, { kind: "forbid" }, { subject: "permission" }),
  ];
  const events = [
    "authorization.connect_role_and_permission",
    "authorization.disconnect_role_and_permissions",
    "permission.delete",
  ];
  const audit = entries.map(({ id }, n) => ({ id, event: events[n] ?? "", count: 1 }));
  expect(checkAudit(aCase({ changes: entries }, { audit }))).toEqual([]);
  expect(checkAudit(aCase({ changes: entries }, { audit: audit.slice(1) }))).toHaveLength(1);
});

test("audit checker ignores rows of other events and unsent calls", () => {
  const forbidden = aChange(1, { kind: "forbid" });
  const audit = [
    { id: forbidden.id, event: "key.update", count: 1 },
    { id: "torture/client-1/none", event: "key.update", count: 1 },
  ];
  expect(checkAudit(aCase({ changes: [forbidden] }, { audit }))).toHaveLength(2);
});
