import { describe, expect, test } from "vitest";
import { aKeyView, anIdentityRecord, aRatelimitRecord } from "../../test/builders/key-view.ts";
import type { RatelimitRecord } from "../records.ts";
import type { KeyView } from "../verification/key-view.ts";
import { type CompiledRule, compileRules } from "./match-rule.ts";
import { planRule, type RulePlan } from "./plan-rule.ts";
import type { PolicyRule, RuleRatelimit } from "./policy.ts";

const HOUR = 3_600_000;
const stored = (name: string, limit: number, autoApply = true) => aRatelimitRecord(name, { limit, autoApply });
const ofRule = (changes: Partial<RuleRatelimit> = {}): RuleRatelimit => ({
  scope: { kind: "name", name: "writes" },
  identifier: "key",
  limit: 10,
  durationMs: HOUR,
  cost: 2,
  accuracy: "strict",
  ...changes,
});
const aRule = (changes: Partial<PolicyRule> = {}): CompiledRule => {
  const rule: PolicyRule = { access: "Key", creditCost: 1, ratelimits: [], ...changes };
  const matched = compileRules({ rules: [rule], allowPaths: [] }).match({
    method: "GET",
    target: REQUEST.path,
    host: "",
    headers: [],
  });
  if ("refused" in matched || matched.rule.index !== 0) throw new Error("the rule does not match the request");
  return matched.rule;
};
const REQUEST = {
  method: "GET",
  path: "/orders/7",
  address: "203.0.113.9",
  head: { host: "api.example.com", ruleHeaders: [] as (string | undefined)[] },
};

function aView(options: { key?: RatelimitRecord[]; identity?: RatelimitRecord[]; limited?: boolean } = {}): KeyView {
  const { key = [], identity, limited = false } = options;
  return aKeyView({
    key: { ratelimits: key, limited },
    identity: identity && anIdentityRecord({ ratelimits: identity }),
  });
}

const plan = (view: KeyView, rule: CompiledRule, audit = false) =>
  planRule(view, rule, { workspaceId: "ws_2", request: REQUEST, audit });

describe("what a request is charged", () => {
  test("request plan is empty if the key and the rule have no limits", () => {
    expect(plan(aView(), aRule())).toEqual({
      selected: [],
      limits: [],
      shared: [],
      credits: undefined,
      identifiers: [],
    });
  });

  test("request plan contains auto-applied limits on the counter of each owner", () => {
    const view = aView({ key: [stored("own", 5), stored("manual", 5, false)], identity: [stored("shared", 7)] });
    expect(plan(view, aRule()).limits).toMatchObject([
      { scope: { kind: "name", value: "own" }, identifier: "key_7", limit: 5, cost: 1, accuracy: "strict" },
      { scope: { kind: "name", value: "shared" }, identifier: "id_5", limit: 7, cost: 1 },
    ]);
  });

  test("rule limit replaces the key limit of the same name", () => {
    const { limits } = plan(aView({ key: [stored("writes", 99)] }), aRule({ ratelimits: [ofRule()] }));
    expect(limits).toMatchObject([{ scope: { value: "writes" }, identifier: "key_7", limit: 10, cost: 2 }]);
  });

  test.each([
    { name: "the external id, where there is an identity", view: aView({ identity: [] }), identifier: "alice" },
    { name: "else the key's id", view: aView(), identifier: "key_7" },
  ])("request plan counts a limit by identity under the expected identifier: $name", ({ view, identifier }) => {
    const scope = { kind: "namespace", namespaceId: "rlns_1" } as const;
    const ratelimits = [
      ofRule({ identifier: "identity" }),
      ofRule({ identifier: "identity", scope, accuracy: "local" }),
    ];
    const { limits, shared } = plan(view, aRule({ ratelimits }));
    expect(limits).toMatchObject([{ identifier }]);
    expect(shared).toMatchObject([
      { workspaceId: "ws_2", scope: { kind: "namespace", value: "rlns_1" }, identifier, accuracy: "local" },
    ]);
  });

  test.each([
    { name: "a limited key pays what the rule costs", limited: true, creditCost: 3, cost: 3 },
    { name: "a rule that costs nothing asks for nothing", limited: true, creditCost: 0, cost: undefined },
    { name: "an unlimited key has no counter", limited: false, creditCost: 3, cost: undefined },
  ])("request plan has the expected credits: $name", ({ limited, creditCost, cost }) => {
    expect(plan(aView({ limited }), aRule({ creditCost })).credits?.cost).toBe(cost);
  });

  test("all limits of a rule are charged, even if they have the same name", () => {
    const ratelimits = [ofRule({ limit: 10 }), ofRule({ limit: 100, durationMs: 24 * HOUR })];
    const { limits, selected } = plan(aView({ key: [stored("writes", 99)] }), aRule({ ratelimits }));
    expect(limits).toMatchObject([{ limit: 10 }, { limit: 100, durationMs: 24 * HOUR }]);
    expect(selected.map(({ limit }) => limit)).toEqual([10, 100]);
  });

  test("limit by several values counts each combination separately", () => {
    const ratelimits = [ofRule({ by: ["key", "path.order", "address", "method"] })];
    const rule = aRule({ path: { template: "/orders/{order}" }, ratelimits });
    expect(plan(aView(), rule).limits).toMatchObject([
      { identifier: "key=key_7,path.order=7,address=203.0.113.9,method=GET" },
    ]);
  });

  test("request without a key is charged only to the limits of its rule", () => {
    const rule = aRule({ access: "Anonymous", ratelimits: [ofRule({ by: ["address"] })] });
    const options = { workspaceId: "ws_2", request: REQUEST, audit: false };
    expect(planRule(undefined, rule, options)).toMatchObject({
      limits: [{ workspaceId: "ws_2", identifier: "address=203.0.113.9", cost: 2 }],
      shared: [],
      credits: undefined,
    });
  });

  test.each([
    { name: "of a key", view: aView(), limits: 2 },
    { name: "without a key", view: undefined, limits: 1 },
  ])("plan $name is returned again while the counted values are the same", ({ view, limits }) => {
    const access = view === undefined ? "Anonymous" : "Key";
    const ratelimits = [ofRule({ by: ["address"] }), ofRule({ by: ["method"], limit: 7 })].slice(0, limits);
    const rule = aRule({ access, ratelimits });
    const planOf = (changes: Partial<typeof REQUEST>, last?: RulePlan) =>
      planRule(view, rule, { workspaceId: "ws_2", request: { ...REQUEST, ...changes }, audit: false }, last);
    const first = planOf({});
    expect(planOf({ path: "/orders/8" }, first)).toBe(first);
    const moved = planOf({ address: "203.0.113.10" }, first);
    expect(moved.limits[0]?.identifier).toBe("address=203.0.113.10");
    expect(planOf({}, moved).limits[0]?.identifier).toBe("address=203.0.113.9");
    expect(planOf({ method: "POST" }, first).limits.map(({ identifier }) => identifier)).toEqual(
      ["address=203.0.113.9", "method=POST"].slice(0, limits),
    );
  });

  test("request plan in Audit mode has only zero costs", () => {
    const view = aView({ key: [stored("own", 5)], limited: true });
    const { limits, credits } = plan(view, aRule({ ratelimits: [ofRule()] }), true);
    expect([limits.map(({ cost }) => cost), credits]).toEqual([[0, 0], undefined]);
  });
});
