import { expect, test } from "vitest";
import { explainStale } from "./explain-stale.ts";

const serve = { onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 } } as const;
const deny = { onStale: { ...serve.onStale, action: "Deny" } } as const;

test.each([
  { name: "no gate reports", policy: serve, ageMs: undefined, result: "passed", observed: "at most 30s" },
  { name: "fresh", policy: serve, ageMs: 639.2, result: "passed", observed: "640ms, at most 30s" },
  { name: "at the bound", policy: deny, ageMs: 30_000, result: "passed", observed: "30s, at most 30s" },
  { name: "past it, served", policy: serve, ageMs: 30_001, result: "passed", observed: "31s, at most 30s" },
  { name: "past it, denied", policy: deny, ageMs: 30_001, result: "refused", observed: "31s, at most 30s" },
  { name: "past the last bound", policy: serve, ageMs: 900_001, result: "refused", observed: "15m1s, at most 30s" },
  { name: "never heard", policy: serve, ageMs: Infinity, result: "refused", observed: "unknown, at most 30s" },
])("explanation of stale data has the expected result: $name", ({ policy, ageMs, result, observed }) => {
  expect(explainStale(policy, ageMs)).toMatchObject({ step: "stale", result, observed });
});

test("explanation of stale data always states the policy and whether it applies", () => {
  const served = "serves cached keys, returns 503 for others, and after 15m returns 503";
  expect(explainStale(serve, undefined).detail).toContain(`Without updates, a gate with data older than 30s ${served}`);
  expect(explainStale(serve, 45_000).detail).toContain(
    `The data of a gate is 45s old: a gate with data older than 30s ${served}`,
  );
  expect(explainStale(deny, 1).detail).toContain("older than 30s returns 503 for every key (onStale: Deny)");
  expect(explainStale(serve, Infinity).detail).toContain("The age of a gate's data is unknown");
});
