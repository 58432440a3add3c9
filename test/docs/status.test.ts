import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

/* docs/reference/status.md names what a status can say: everything, and nothing else. */

const page = readFileSync("docs/reference/status.md", "utf8");
const plan = readFileSync("operator/reconcilers/plan.ts", "utf8");

/** The names at the start of the entries of the list after a heading. */
function entries(heading: string): string[] {
  const section = page.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^- `([^`]+)`(?: \(.*?\))?: /gm)].map(([, name = ""]) => name);
}
const quoted = (text: string): string[] => [...text.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);

test("status page lists every reason", () => {
  const reasons = quoted(plan.match(/export type Reason =([^;]+);/)?.[1] ?? "");
  expect(reasons.length).toBeGreaterThan(15);
  // Of the CRD's default, before an operator has looked.
  expect(entries("Reasons").sort()).toEqual([...reasons, "Pending"].sort());
});

test("status page lists every condition", () => {
  const further = quoted(plan.match(/readonly type: ("Accepted"[^;]+);/)?.[1] ?? "");
  expect(further.length).toBeGreaterThan(4);
  expect(entries("Conditions").sort()).toEqual(["Ready", "Reconciling", "Stalled", ...further].sort());
});
