import { expect, test } from "vitest";
import { centralAclRules, podAclRules } from "./acl.ts";

test("a pod's user is confined to its workspace: records are read only, and no script of its own runs", () => {
  const rules = podAclRules({ workspaceId: "ws_1" });
  expect(rules.slice(0, 2)).toEqual(["reset", "on"]);
  const keys = rules.filter((rule) => rule.includes("~"));
  expect(keys.every((rule) => /^(%R)?~ps:ws_1:/.test(rule))).toBe(true);
  expect(
    keys
      .filter((rule) => /:(k|i|r|a|n|nn|p|o):|:w$|:mark:|:changes:/.test(rule))
      .every((rule) => rule.startsWith("%R~")),
  ).toBe(true);
  for (const name of ["eval", "eval_ro", "script", "keys", "config", "xreadgroup", "unlink"])
    expect(rules).not.toContain(`+${name}`);
  expect(podAclRules({ workspaceId: "ws_1", mayEval: true })).toContain("+eval");
});

test("on a Redis for events a pod's user can access only its workspace's events", () => {
  const rules = podAclRules({ workspaceId: "ws_1", store: "events", prefix: "p" });
  expect(rules.filter((rule) => rule.includes("~"))).toEqual(["~p:ws_1:events", "~p:ws_1:events-room:{*"]);
  expect(rules).not.toContain("+getrange");
});

test("special characters of patterns are matched literally, and a space is refused in a rule", () => {
  expect(podAclRules({ workspaceId: "ws_*", prefix: "a[b]?" })).toContain("~a\\[b\\]\\?:ws_\\*:cr-dirty");
  expect(centralAclRules({ prefix: "*" })).toContain("~\\*:*");
  for (const workspaceId of ["", "ws 1", "ws_1\n~*"])
    expect(() => podAclRules({ workspaceId })).toThrow(/cannot stand/);
});
