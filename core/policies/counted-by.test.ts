import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aKeyView, anIdentityRecord } from "../../test/builders/key-view.ts";
import { type Counting, identifierOf } from "./counted-by.ts";
import { compileRules } from "./match-rule.ts";
import type { PolicyRule } from "./policy.ts";

const TEMPLATE = "/a/{x}/{y}/{rest...}";
const BY = ["key", "identity", "address", "host", "method", "path.x", "path.y", "header.x-a", "header.x-b"];

interface Values {
  readonly x: string;
  readonly y: string;
  readonly a: string | undefined;
  readonly b: string | undefined;
  readonly owner: string;
  readonly host: string;
}

/** Returns a function that identifies a request; it keeps its state between calls. */
function counterBy(by: readonly string[], nowMs: () => number = () => 0, shared = { count: 0 }) {
  const limit = { scope: { kind: "name", name: "n" }, by: [...by], limit: 1, durationMs: 1000, cost: 1 } as const;
  const rule: PolicyRule = {
    access: "Key",
    creditCost: 1,
    path: { template: TEMPLATE },
    ratelimits: [{ ...limit, by: [...by], accuracy: "strict" }],
  };
  const matcher = compileRules({ rules: [rule], allowPaths: [] }, { nowMs, shared });
  return (values: Partial<Values> = {}): string => {
    const { x = "1", y = "2", a, b, owner = "alice", host = "h" } = values;
    const path = `/a/${encodeURIComponent(x)}/${encodeURIComponent(y)}/z`;
    const matched = matcher.match({ method: "GET", target: path, host: "", headers: [] });
    if ("refused" in matched) throw new Error(matched.refused);
    const headers: Record<string, string | undefined> = { "x-a": a, "x-b": b };
    const head = { host, ruleHeaders: matcher.headerNames.map((name) => headers[name]) };
    const [compiled] = matched.rule.ratelimits;
    if (compiled === undefined) throw new Error("the rule has a limit");
    const counting: Counting = {
      view: aKeyView({ identity: anIdentityRecord({ externalId: owner }) }),
      request: { method: "GET", path: matched.path, address: "203.0.113.9", head },
      path: matched.rule.path,
    };
    return identifierOf(compiled, counting);
  };
}

describe("identifier of a limit", () => {
  test("two different lists of values never have the same identifier", () => {
    const text = fc.oneof(
      fc.constantFrom("a", "b", "a,b", "a=b", "%2C", ",", "=", "others", "alice", "x".repeat(65), "x".repeat(66)),
      fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 4 }),
    );
    const values = fc.record({ x: text, y: text, a: text, b: text, owner: text, host: text });
    const by = fc.uniqueArray(fc.constantFrom(...BY), { minLength: 1, maxLength: 4 });
    const listed = (names: readonly string[], { x, y, a, b, owner, host }: Values): string => {
      const all: Record<string, unknown> = { "path.x": x, "path.y": y, "header.x-a": a, "header.x-b": b, host };
      return JSON.stringify(names.map((name) => [name, name === "identity" ? owner : (all[name] ?? "")]));
    };
    const isPath = (one: string) => /^[!-~]+$/.test(one) && !/[/;.%\\?#]/.test(one);
    fc.assert(
      fc.property(by, values, by, values, (by1, one, by2, other) => {
        fc.pre([one.x, one.y, other.x, other.y].every(isPath));
        // A single key or identity is counted by its plain id, which overrides name.
        fc.pre(by1.join() !== "identity" && by2.join() !== "identity");
        const isSame = counterBy(by1)(one) === counterBy(by2)(other);
        expect(isSame).toBe(listed(by1, one) === listed(by2, other));
      }),
      { numRuns: 3000 },
    );
  });

  test("limit by header counts a missing header as empty and a long value by its hash", () => {
    expect(counterBy(["header.X-A"])()).toBe("header.x-a=");
    const long = counterBy(["header.x-a"])({ a: "x".repeat(10_000) });
    expect(long).toMatch(/^header\.x-a=%sha256:.{43}$/);
  });

  test("path parameter is counted without the parameters after a semicolon", () => {
    const rule: PolicyRule = { access: "Key", creditCost: 1, path: { template: "/{x}" }, ratelimits: [] };
    const limit = { scope: { kind: "name", name: "n" } as const, limit: 1, durationMs: 1000, cost: 1 };
    const ratelimits = [{ ...limit, by: ["path.x"], accuracy: "strict" as const }];
    const matcher = compileRules({ rules: [{ ...rule, ratelimits }], allowPaths: ["Semicolon"] });
    const identifiers = ["/7", "/7;a=1", "/%37;b"].map((target) => {
      const matched = matcher.match({ method: "GET", target, host: "", headers: [] });
      if ("refused" in matched) throw new Error(matched.refused);
      const [compiled] = matched.rule.ratelimits;
      const request = { method: "GET", path: matched.path, address: "", head: { host: "", ruleHeaders: [] } };
      return compiled && identifierOf(compiled, { view: undefined, request, path: matched.rule.path });
    });
    expect(new Set(identifiers)).toEqual(new Set(["path.x=7"]));
  });
});

describe("values that clients invent", () => {
  test("one client has at most 1,000 identifiers per window, and all further values share one identifier", () => {
    const shared = { count: 0 };
    const identify = counterBy(["key", "header.x-a"], () => 0, shared);
    const found = new Set(Array.from({ length: 5_000 }, (_, at) => identify({ a: `v${at}` })));
    expect(found.size).toBe(1_001);
    expect(found).toContain("key=key_7,others");
    expect(shared.count).toBe(4_000);
    expect(identify({ a: "v7" })).toBe("key=key_7,header.x-a=v7");
  });

  test("limit that counts only by values that clients invent has at most 10,000 identifiers per window, and starts again in the next window", () => {
    let nowMs = 0;
    const identify = counterBy(["header.x-a"], () => nowMs);
    const found = new Set(Array.from({ length: 100_000 }, (_, at) => identify({ a: `v${at}` })));
    expect(found.size).toBe(10_001);
    expect(identify({ a: "late" })).toBe("others");
    nowMs = 1_000;
    expect(identify({ a: "late" })).toBe("header.x-a=late");
  });

  test("flood of one limit leaves the identifiers of another limit separate", () => {
    const limit = (name: string) => ({
      scope: { kind: "name", name } as const,
      by: [`header.${name}`],
      limit: 1,
      durationMs: 1000,
      cost: 1,
      accuracy: "strict" as const,
    });
    const rule: PolicyRule = { access: "Anonymous", creditCost: 1, ratelimits: [limit("x-a"), limit("x-b")] };
    const matcher = compileRules({ rules: [rule], allowPaths: [] }, { nowMs: () => 0 });
    const matched = matcher.match({ method: "GET", target: "/", host: "", headers: [] });
    if ("refused" in matched) throw new Error(matched.refused);
    const identify = (a: string, b: string) =>
      matched.rule.ratelimits.map((compiled) => {
        const head = { host: "", ruleHeaders: matcher.headerNames.map((name) => (name === "x-a" ? a : b)) };
        const request = { method: "GET", path: "/", address: "", head };
        return identifierOf(compiled, { view: undefined, request, path: matched.rule.path });
      });
    for (let at = 0; at < 20_000; at++) identify(`v${at}`, "same");
    expect(identify("new", "new")).toEqual(["others", "header.x-b=new"]);
  });
});
