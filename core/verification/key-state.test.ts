import { describe, expect, test } from "vitest";
import { aKeyView, anApiRecord } from "../../test/builders/key-view.ts";
import { checkKey } from "./check-key.ts";
import { codeAfterCounting } from "./conclude.ts";
import { type KeyDetails, keyState } from "./key-state.ts";

const nowMs = 1_800_000_000_000;

const GOOD: KeyDetails = {
  isDeleted: false,
  isApiDeleted: false,
  isWorkspaceEnabled: true,
  enabled: true,
  expiresMs: undefined,
  limitsReached: 0,
  remainingCredits: undefined,
};

test("key state of a usable key has no problems", () =>
  expect(keyState(GOOD, nowMs)).toEqual({ code: "VALID", reasons: [] }));

test.each<{ name: string; facts: Partial<KeyDetails>; expected: ReturnType<typeof keyState> }>([
  { name: "a deleted key", facts: { isDeleted: true }, expected: { code: "NOT_FOUND", reasons: ["keyDeleted"] } },
  {
    name: "one whose last millisecond it is lives",
    facts: { expiresMs: nowMs },
    expected: { code: "VALID", reasons: [] },
  },
  {
    name: "one that has expired",
    facts: { expiresMs: nowMs - 1 },
    expected: { code: "EXPIRED", reasons: ["expired"] },
  },
  { name: "an expiry of 0 is one", facts: { expiresMs: 0 }, expected: { code: "EXPIRED", reasons: ["expired"] } },
  { name: "one credit is enough", facts: { remainingCredits: 1 }, expected: { code: "VALID", reasons: [] } },
  {
    name: "everything that stands against it is listed, the deciding one first",
    facts: { enabled: false, expiresMs: 0, isWorkspaceEnabled: false, remainingCredits: 0, limitsReached: 2 },
    expected: {
      code: "FORBIDDEN",
      reasons: ["workspaceDisabled", "disabled", "expired", "limitReached", "noCredits"],
    },
  },
])("key state has the expected reasons: $name", ({ facts: details, expected }) =>
  expect(keyState({ ...GOOD, ...details }, nowMs)).toEqual(expected),
);

describe("agrees with verification for every combination", () => {
  const bits = Array.from({ length: 2 ** 6 }, (_, n) => [0, 1, 2, 3, 4, 5].map((bit) => ((n >> bit) & 1) === 1));

  test.each(bits)(
    "key state lists its problems in order: API deleted %s, workspace disabled %s, disabled %s, expired %s, limit %s, credits %s",
    (...against) => {
      const [isApiDeleted = false, isClosed = false, isDisabled = false, isExpired = false, isLimited, isSpent] =
        against;
      const expiresMs = isExpired ? nowMs - 1 : undefined;
      const view = aKeyView({
        api: isApiDeleted ? undefined : anApiRecord(),
        workspace: { enabled: !isClosed },
        key: { enabled: !isDisabled, ...(expiresMs === undefined ? {} : { expiresMs }) },
      });
      const counted = codeAfterCounting({
        passed: isLimited !== true,
        credits: { status: isSpent === true ? "refused" : "spent", remaining: 0 },
      });
      const details: KeyDetails = {
        isDeleted: false,
        isApiDeleted,
        isWorkspaceEnabled: !isClosed,
        enabled: !isDisabled,
        expiresMs,
        limitsReached: isLimited === true ? 1 : 0,
        remainingCredits: isSpent === true ? 0 : 1,
      };
      expect(keyState(details, nowMs).code).toBe(checkKey({ view, nowMs }) ?? counted);
    },
  );
});
