import { describe, expect, test } from "vitest";
import type { Consumed, LimitOutcome } from "../charges.ts";
import { codeAfterCounting, retryAfterS } from "./conclude.ts";

test.each([
  { name: "limits that pass are valid", consumed: { passed: true }, code: "VALID" },
  {
    name: "credits that were spent are valid",
    consumed: { passed: true, credits: { status: "spent", remaining: 0 } as const },
    code: "VALID",
  },
  {
    name: "a limit is said before credits",
    consumed: { passed: false, credits: { status: "unreached", remaining: 0 } as const },
    code: "RATE_LIMITED",
  },
  {
    name: "credits that do not suffice",
    consumed: { passed: true, credits: { status: "refused", remaining: 1 } as const },
    code: "USAGE_EXCEEDED",
  },
  {
    name: "credits that are not known do not let through",
    consumed: { passed: true, credits: { status: "unknown" } as const },
    code: "USAGE_EXCEEDED",
  },
])("verification code after counting is correct: $name", ({ consumed, code }) =>
  expect(codeAfterCounting(consumed)).toBe(code),
);

describe("when a denied request may be retried", () => {
  const NOON_MS = Date.UTC(2026, 1, 28, 12, 0, 0, 400);
  const passed: LimitOutcome = { passed: true, remaining: 3, resetMs: NOON_MS + 90_000 };
  const refused = (retryAtMs: number | undefined, resetMs = NOON_MS + 30_000): LimitOutcome => ({
    passed: false,
    remaining: 0,
    resetMs,
    ...(retryAtMs === undefined ? {} : { retryAtMs }),
  });
  const consumed = (...limits: LimitOutcome[]): Consumed => ({ nowMs: NOON_MS, limits, passed: false });

  test.each([
    { name: "what is valid needs no retry", code: "VALID", of: consumed(passed), seconds: undefined },
    {
      name: "a limit says when it could pass",
      code: "RATE_LIMITED",
      of: consumed(refused(NOON_MS + 1_001)),
      seconds: 2,
    },
    { name: "never less than a second", code: "RATE_LIMITED", of: consumed(refused(NOON_MS + 1)), seconds: 1 },
    {
      name: "of several the last one decides, in whatever order; those that pass do not count",
      code: "RATE_LIMITED",
      of: consumed(refused(NOON_MS + 9_000), passed, refused(NOON_MS + 2_000)),
      seconds: 9,
    },
    {
      name: "a limit that never passes may have been changed by its next window",
      code: "RATE_LIMITED",
      of: consumed(refused(Number.POSITIVE_INFINITY)),
      seconds: 30,
    },
    { name: "so may one that does not say", code: "RATE_LIMITED", of: consumed(refused(undefined)), seconds: 30 },
    { name: "credits come back after midnight UTC", code: "USAGE_EXCEEDED", of: consumed(), seconds: 12 * 3600 },
  ] as const)("retry time of a rejected verification is correct: $name", ({ code, of, seconds }) =>
    expect(retryAfterS(code, of)).toBe(seconds),
  );
});
