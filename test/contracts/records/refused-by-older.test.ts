import { Ajv } from "ajv";
import { expect, test } from "vitest";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import { aPolicy } from "../../harness/gate.ts";
import { readFrozenRecords, readFrozenSchema } from "./frozen.ts";

/* A policy that gates of an earlier version cannot enforce must be unreadable for them, so that they keep and report the previous one. */

const record = (onCounterFailure: CompiledPolicy["onCounterFailure"]) => ({
  policyId: "pol_1",
  name: "orders",
  apiId: "api_1",
  uid: "uid_1",
  generation: 1,
  version: 1,
  policy: aPolicy({ onCounterFailure }),
});

test("version 0.1.0 readers reject a policy that divides limits by the number of pods", () => {
  const reads = new Ajv({ strict: false }).compile(readFrozenSchema("0.1.0", "policy"));
  expect([reads(record("Local")), reads(record("Deny"))]).toEqual([true, true]);
  expect(reads(record("LocalShare"))).toBe(false);
});

test("readers of format 1 reject every policy of format 2", () => {
  const reads = new Ajv({ strict: false }).compile(readFrozenSchema("0.1.0", "policy"));
  const policies = readFrozenRecords("0.1.0", "policy2");
  expect(policies.length).toBeGreaterThan(0);
  for (const one of policies) expect(reads(one)).toBe(false);
});
