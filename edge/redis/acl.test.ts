import { expect, test } from "vitest";
import { controlPlaneAclRules, podAclRules } from "./acl.ts";

test("Redis ACL limits the user of a pod to reading its workspace and known scripts", () => {
  const rules = podAclRules({ workspaceId: "ws_1" });
  expect(rules.slice(0, 2)).toEqual(["reset", "on"]);
  const keys = rules.flatMap((rule) => rule.match(/\S*~[^\s)]+/g) ?? []);
  expect(keys.every((key) => /^(%[RW])?~ps:ws_1:/.test(key))).toBe(true);
  expect(
    keys
      .filter((key) => /:(k|i|r|a|n|nn|p|o):|:w$|:state:|:changes:|:history:/.test(key))
      .every((key) => key.startsWith("%R~")),
  ).toBe(true);
  for (const name of ["eval", "eval_ro", "script", "keys", "config", "xreadgroup", "unlink"])
    expect(rules).not.toContain(`+${name}`);
  expect(podAclRules({ workspaceId: "ws_1", mayEval: true })).toContain("+eval");
});

test("Redis ACL for event streams limits the user of a pod to its workspace", () => {
  const rules = podAclRules({ workspaceId: "ws_1", store: "events", prefix: "p" });
  expect(rules.filter((rule) => rule.includes("~"))).toEqual([
    "~p:ws_1:events-quota:{*",
    "~p:ws_1:events",
    "(+exists +decrby +unlink ~p:ws_1:events-quota:{*)",
    "(+xadd %W~p:ws_1:events)",
  ]);
});

test("Redis ACL patterns escape special characters and reject spaces", () => {
  expect(podAclRules({ workspaceId: "ws_*", prefix: "a[b]?" })).toContain("~a\\[b\\]\\?:ws_\\*:cr-dirty");
  expect(controlPlaneAclRules({ prefix: "*" })).toContain("~\\*:*");
  for (const workspaceId of ["", "ws 1", "ws_1\n~*", "ws_1)", 'ws"1'])
    expect(() => podAclRules({ workspaceId })).toThrow(/cannot stand/);
});
