import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { ApiKeyPolicySpec } from "../../core/manifests/api-key-policy.ts";
import { compilePolicy, namespacesOf } from "../../core/manifests/compile-policy.ts";
import { PolicyInput } from "../../core/policies/policy.ts";

/*
 * Policies without the fields of the second edition of rules compile to the same bytes as before it, so gates of the first edition enforce
 * them, and an upgrade changes no stored policy. `first-edition.json` has the valid manifests of this folder and of examples/, with what
 * the last commit before the second edition compiled them to.
 */

const ROOT = join(import.meta.dirname, "../..");
const CASES = JSON.parse(readFileSync(join(import.meta.dirname, "first-edition.json"), "utf8")) as readonly {
  readonly name: string;
  readonly spec: unknown;
  readonly compiled: string;
}[];

function compile(spec: unknown): string {
  const parsed = ApiKeyPolicySpec.parse(spec);
  const namespaceIds = new Map(namespacesOf(parsed).map((name, at) => [name, `rlns_${at + 1}`]));
  return JSON.stringify(compilePolicy(parsed, { apiId: "api_1", namespaceIds }));
}

test.each(CASES)("policy of the first edition compiles and parses to the same bytes: $name", ({ spec, compiled }) => {
  expect(compile(spec)).toBe(compiled);
  expect(JSON.stringify(PolicyInput.parse(JSON.parse(compiled)))).toBe(compiled);
});

test("policy of the quickstart still compiles to the bytes of the first edition", () => {
  const file = "examples/quickstart/policy.yaml";
  const { spec } = parse(readFileSync(join(ROOT, file), "utf8"));
  expect(compile(spec)).toBe(CASES.find(({ name }) => name === file)?.compiled);
});
