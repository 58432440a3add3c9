import { describe, expect, test } from "vitest";
import { windowOf } from "./buckets.ts";
import { errorPosition, offsetOf } from "./error-position.ts";
import { rangeOf, readUsageSearch, showsLatency, withRange } from "./search.ts";

describe("the page URL", () => {
  test("usage page URL is parsed and unknown values are ignored", () => {
    const search = { range: "7d", api: "api_1", key: 12, owner: "o'brien 名", outcome: "VALID", more: 1 };
    expect(readUsageSearch(search)).toEqual({
      range: "7d",
      api: "api_1",
      key: "12",
      owner: "o'brien 名",
      outcome: "VALID",
    });
    const wrong = { range: "constructor", from: 5, to: "x", api: {}, key: "", owner: ["x"], outcome: null };
    expect(readUsageSearch(wrong)).toEqual({});
    expect(readUsageSearch({ from: 10, to: 5 })).toEqual({});
    expect(readUsageSearch({ from: -1, to: 1e300 })).toEqual({});
  });

  test("custom time range replaces a preset in the usage page URL, and a preset replaces a custom range", () => {
    const chosen = withRange({ range: "7d", key: "key_1" }, { fromMs: 5.5, toMs: 9.5 });
    expect(chosen).toEqual({ key: "key_1", from: 5, to: 10 });
    expect(rangeOf(readUsageSearch({ ...chosen }))).toEqual({ fromMs: 5, toMs: 10 });
    expect(withRange(chosen, "30d")).toEqual({ key: "key_1", range: "30d" });
    expect(rangeOf(withRange(chosen, "24h"))).toBe("24h");
  });

  test("latency charts request at most one day", () => {
    const nowMs = Date.parse("2026-03-01T10:30:00Z");
    expect((["1h", "6h", "24h", "7d", "30d"] as const).map((range) => showsLatency(windowOf(range, nowMs)))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });
});

describe("error positions", () => {
  test("position in a query error message is located in the query text", () => {
    const place = errorPosition("Line 2, column 4: unknown column `x`");
    expect(place).toEqual({ line: 2, column: 4, message: "unknown column `x`" });
    expect(errorPosition("The store does not respond.")).toBeUndefined();
  });

  test.each([
    { text: "abc\nde名fg", line: 2, column: 4, at: "f" },
    { text: "🎉🎉x", line: 1, column: 3, at: "x" },
    { text: "a\r\nb", line: 2, column: 1, at: "b" },
  ])("position in a query error counts code points: $at", ({ text, line, column, at }) => {
    expect(text.slice(offsetOf(text, { line, column }))[0]).toBe(at);
  });

  test("position beyond the query text is treated as its end", () => {
    expect(offsetOf("ab", { line: 1, column: 99 })).toBe(2);
    expect(offsetOf("ab", { line: 7, column: 1 })).toBe(2);
  });
});
