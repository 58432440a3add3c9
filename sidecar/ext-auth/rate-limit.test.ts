import { describe, expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import { aPolicy } from "../../test/harness/gate.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { type Descriptor, type RateLimitDeps, rateLimit } from "./rate-limit.ts";

/* Behavior when the store is unavailable; `grpc-server.test.ts` tests everything else through the endpoint. */

const descriptors: Descriptor[] = [
  { entries: [{ key: "user", value: "own" }], limit: { limit: 1, durationMs: 60_000 }, cost: 1 },
  { entries: [{ key: "user", value: "overridden" }], limit: undefined, cost: 1 },
];

/** Returns dependencies of a gate whose store does not respond. */
function partsWithout(changes: Parameters<typeof aPolicy>[0], stalenessMs = 0) {
  const countedLocally: LimitCharge[] = [];
  const unusable = async () => ({ status: "unusable", reason: "away" });
  const policy = aPolicy(changes);
  const deps = {
    policy: () => ({ policy }) as ActivePolicy,
    counting: {
      workspaceId: "ws_test",
      projection: {
        findNamespace: unusable,
        findNamespaceByName: unusable,
        findOverride: unusable,
        stalenessMs: () => stalenessMs,
      },
      counters: {
        consume: async () => {
          throw new CountersUnavailable("away");
        },
      },
      countLocally: async (limits: LimitCharge[]) => {
        countedLocally.push(...limits);
        return { nowMs: 0, passed: false, limits: limits.map(() => ({ passed: false, remaining: 0, resetMs: 1 })) };
      },
      onUncounted: () => undefined,
      onStaleDecision: () => undefined,
    },
    events: { add: () => undefined },
    nextId: () => "1",
  };
  return { parts: deps as unknown as RateLimitDeps, countedLocally };
}

describe("Redis is unavailable", () => {
  test("onCounterFailure Local counts descriptor limits in the gate while Redis is unavailable", async () => {
    const { parts: deps, countedLocally } = partsWithout({ onCounterFailure: "Local" });
    const limited = await rateLimit(deps, "edge", descriptors);
    expect(limited).toMatchObject({ kind: "decided", passed: false });
    expect(countedLocally.map(({ identifier, limit }) => [identifier, limit])).toEqual([["user=own", 1]]);
  });

  test("onCounterFailure Allow admits all rate limit requests uncounted", async () => {
    const { parts: deps, countedLocally } = partsWithout({ onCounterFailure: "Allow" });
    expect(await rateLimit(deps, "edge", descriptors)).toMatchObject({ kind: "decided", passed: true });
    expect(countedLocally).toEqual([]);
  });

  test("onCounterFailure Deny makes rate limit requests fail while Redis is unavailable", async () => {
    const { parts: deps } = partsWithout({ onCounterFailure: "Deny" });
    expect(await rateLimit(deps, "edge", descriptors)).toMatchObject({ kind: "undecided" });
  });

  test("rate limit requests fail when cached data exceeds its maximum staleness", async () => {
    const { parts: deps } = partsWithout({ onCounterFailure: "Allow" }, 901_000);
    expect(await rateLimit(deps, "edge", descriptors)).toMatchObject({ kind: "undecided" });
  });
});

test("Audit mode admits rate limit requests over the limit and reports them", async () => {
  const { parts: deps } = partsWithout({ mode: "Audit" });
  const limited = await rateLimit(deps, "edge", descriptors);
  expect(limited).toMatchObject({ kind: "decided", passed: true, consumed: { passed: false } });
});
