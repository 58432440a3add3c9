import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LimitCharge } from "../charges.ts";
import type { OverrideRecord } from "../records.ts";
import { applyOverride, explainOverrides, matchesPattern, selectOverride } from "./overrides.ts";

const anOverride = (id: string, identifier: string): OverrideRecord => ({
  id,
  identifier,
  limit: 1,
  durationMs: 1000,
  async: false,
});

describe("a pattern", () => {
  test.each([
    ["premium_*", "premium_", true],
    ["premium_*", "premium_42", true],
    ["premium_*", "xpremium_1", false],
    ["premium_*", "Premium_1", false],
    ["*@example.com", "a@example.com", true],
    ["*@example.com", "a@example.com.evil", false],
    ["user_*_eu", "user_1_eu", true],
    ["user_*_eu", "user__eu", true],
    ["user_*_eu", "user_eu", false],
    ["*", "", true],
    ["*", "everything", true],
    ["*", "two\nlines", false],
    ["*\n*", "two\nlines", true],
    ["a", "a", true],
    ["a", "ab", false],
    ["a**b", "ab", true],
    ["a.c*", "abc", false],
    ["(*", "(x", true],
  ])("match of override pattern %j with identifier %j is %s", (pattern, identifier, expected) =>
    expect(matchesPattern(pattern, identifier)).toBe(expected),
  );

  test("override pattern matches the same identifiers as an equivalent regular expression", () => {
    const text = fc.array(fc.constantFrom("a", "b", "a", "\n", "\r", "\u2028", ".", "é"), { maxLength: 10 });
    const pattern = fc.array(fc.constantFrom("a", "b", "*", "*", "\n", ".", "é"), { maxLength: 8 });
    fc.assert(
      fc.property(pattern, text, (patternParts, textParts) => {
        const source = patternParts.map((part) => (part === "*" ? ".*" : part.replace(".", "\\."))).join("");
        const identifier = textParts.join("");
        const expected = new RegExp(`^${source}$`).test(identifier);
        expect(matchesPattern(patternParts.join(""), identifier)).toBe(expected);
      }),
      { numRuns: 10_000 },
    );
  });

  test("override pattern with many stars is decided in linear time", () => {
    const startedMs = performance.now();
    expect(matchesPattern(`${"a*".repeat(255)}b`, "a".repeat(512))).toBe(false);
    expect(performance.now() - startedMs).toBeLessThan(1000);
  });
});

describe("several overrides", () => {
  test.each([
    {
      name: "the one with most literal characters applies",
      patterns: [
        ["1", "*"],
        ["2", "user_*"],
        ["3", "user_1*"],
      ],
      identifier: "user_12",
      id: "3",
    },
    {
      name: "stars do not count as characters",
      patterns: [
        ["1", "u***"],
        ["2", "us*"],
      ],
      identifier: "user",
      id: "2",
    },
    {
      name: "ties go to the smaller id",
      patterns: [
        ["b", "user*"],
        ["a", "*user"],
        ["c", "us*er"],
      ],
      identifier: "user",
      id: "a",
    },
    {
      name: "the exact spelling is before any pattern, also with a star in it",
      patterns: [
        ["1", "use*r*"],
        ["2", "u*"],
      ],
      identifier: "u*",
      id: "2",
    },
    {
      name: "also before one that matches with as many literal characters and has a smaller id",
      patterns: [
        ["1", "*u*"],
        ["2", "u*"],
      ],
      identifier: "u*",
      id: "2",
    },
    {
      name: "one without any literal character applies to everybody",
      patterns: [["1", "*"]],
      identifier: "u",
      id: "1",
    },
    { name: "none applies when none matches", patterns: [["1", "a*"]], identifier: "b", id: undefined },
  ])("selectOverride chooses the expected override: $name", ({ patterns, identifier, id }) => {
    const records = patterns.map(([key = "", pattern = ""]) => anOverride(key, pattern));
    expect(selectOverride(records, identifier)?.id).toBe(id);
    expect(selectOverride(records.toReversed(), identifier)?.id).toBe(id);
  });
});

describe("an explanation", () => {
  const explained = (patterns: readonly string[], identifier: string) =>
    explainOverrides(
      patterns.map((pattern, i) => anOverride(`${i}`, pattern)),
      identifier,
    ).map(({ override, literals, overriddenBy }) => [override.identifier, literals, overriddenBy]);

  test("override explanation lists the applied override and why the others do not apply", () => {
    expect(explained(["*", "b*", "premium_*", "*_42", "prem*", "*mium_"], "premium_42")).toEqual([
      ["premium_*", 8, undefined],
      ["prem*", 4, "moreLiterals"],
      ["*_42", 3, "moreLiterals"],
      ["*", 0, "moreLiterals"],
    ]);
    expect(explained(["*r", "us*", "u*r"], "user")).toEqual([
      ["us*", 2, undefined],
      ["u*r", 2, "smallerId"],
      ["*r", 1, "moreLiterals"],
    ]);
    expect(explained(["us*", "*", "user"], "user")).toEqual([
      ["user", 4, undefined],
      ["us*", 2, "exactOne"],
      ["*", 0, "exactOne"],
    ]);
    expect(explained(["a*"], "b")).toEqual([]);
  });

  test("override explanation starts with the result of selectOverride and lists all matching overrides", () => {
    const text = fc.array(fc.constantFrom("a", "b", "*", "\n"), { maxLength: 5 }).map((parts) => parts.join(""));
    const property = fc.property(fc.uniqueArray(text, { maxLength: 12 }), text, (patterns, identifier) => {
      const overrides = patterns.map((pattern, i) => anOverride(`${(i * 7) % 13}`, pattern));
      const matching = explainOverrides(overrides, identifier);
      expect(matching[0]?.override).toBe(selectOverride(overrides, identifier));
      expect(matching.filter(({ overriddenBy }) => overriddenBy === undefined)).toHaveLength(
        Math.min(1, matching.length),
      );
      const wanted = overrides.filter(
        (one) => one.identifier === identifier || matchesPattern(one.identifier, identifier),
      );
      expect(new Set(matching.map(({ override }) => override))).toEqual(new Set(wanted));
    });
    fc.assert(property, { numRuns: 500 });
  });
});

test("override replaces limit and duration, and can change strict to local but not local to strict", () => {
  const charge: LimitCharge = {
    workspaceId: "ws_1",
    scope: { kind: "namespace", value: "rlns_1" },
    identifier: "alice",
    limit: 10,
    durationMs: 3_600_000,
    cost: 2,
    accuracy: "local",
  };
  const override = { id: "rlor_1", identifier: "alice", limit: 1, durationMs: 1000, async: false };
  expect(applyOverride(charge, override)).toEqual({ ...charge, limit: 1, durationMs: 1000 });
  expect(applyOverride({ ...charge, accuracy: "strict" }, { ...override, async: true }).accuracy).toBe("local");
});
