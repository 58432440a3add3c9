import { expect, test } from "vitest";
import type { Step } from "../core/explanation/shapes.ts";
import { UNANSWERED } from "../core/explanation/step.ts";
import { formatExplanation } from "./explanation.ts";

const step = (of: Partial<Step>): Step => ({
  step: "limits",
  result: "passed",
  decisive: false,
  observed: "some 1/5",
  detail: "Every limit would let it through.",
  sources: [],
  ...of,
});
const shown = (...steps: Step[]) => formatExplanation({ code: "VALID", allowed: true, status: 200, steps }, undefined);
const unanswered = {
  result: "skipped",
  observed: UNANSWERED,
  detail: "The policy's onCounterFailure is Local.",
} as const;

test("explanation says below the table how a policy decides without counters, even if this did not change the outcome", () => {
  expect(shown(step(unanswered)).slice(-2)).toEqual(["", unanswered.detail]);
  expect(shown(step({})).join("\n")).not.toContain("Every limit");
});

test("explanation shows the decisive step only once", () => {
  const lines = formatExplanation(
    { code: "UNKNOWN", allowed: false, status: 503, steps: [step({ ...unanswered, decisive: true })] },
    undefined,
  );
  expect(lines.filter((line) => line.includes(unanswered.detail))).toEqual([`  limits: ${unanswered.detail}`]);
});

test("explanation prints text from the server without control characters", () => {
  expect(shown(step({ ...unanswered, detail: "by \u001b[31mred" })).join("\n")).not.toContain("\u001b");
});
