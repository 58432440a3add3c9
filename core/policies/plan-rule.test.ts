import { describe, expect, test } from "vitest";
import { aKeyView, anIdentityRecord, aRatelimitRecord } from "../../test/builders/key-view.ts";
import type { RatelimitRecord } from "../records.ts";
import type { KeyView } from "../verification/key-view.ts";
import type { CompiledRule } from "./match-rule.ts";
import { planRule } from "./plan-rule.ts";
import type { RuleRatelimit } from "./policy.ts";

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
const aRule = (changes: Partial<CompiledRule> = {}): CompiledRule => ({
  index: 0,
  access: "Key",
  creditCost: 1,
  ratelimits: [],
  ...changes,
});

function aView(options: { key?: RatelimitRecord[]; identity?: RatelimitRecord[]; limited?: boolean } = {}): KeyView {
  const { key = [], identity, limited = false } = options;
  return aKeyView({
    key: { ratelimits: key, limited },
    identity: identity && anIdentityRecord({ ratelimits: identity }),
  });
}

const plan = (view: KeyView, rule: CompiledRule, audit = false) => planRule(view, rule, { audit });

describe("what a request is charged", () => {
  test("request plan is empty when key and rule have no limits", () => {
    expect(plan(aView(), aRule())).toEqual({ selected: [], limits: [], shared: [], credits: undefined });
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

  test("request plan in Audit mode has only zero costs", () => {
    const view = aView({ key: [stored("own", 5)], limited: true });
    const { limits, credits } = plan(view, aRule({ ratelimits: [ofRule()] }), true);
    expect([limits.map(({ cost }) => cost), credits]).toEqual([[0, 0], undefined]);
  });
});
