import { expect, test } from "vitest";
import { ApiKeyPolicySpec } from "../../core/manifests/api-key-policy.ts";
import { RatelimitNamespaceSpec } from "../../core/manifests/ratelimit-namespace.ts";
import { anObject } from "../test/builders.ts";
import { mayRefer, parseSpec } from "./spec.ts";
import { unknownFields } from "./unknown-fields.ts";

const SPEC = { api: { name: "orders" }, target: { port: 80 } };
const parse = (more: object) => parseSpec(ApiKeyPolicySpec, anObject("ApiKeyPolicy", { ...SPEC, ...more }));

test("parseSpec ignores and lists unknown fields at every level", () => {
  const { spec, unknown } = parse({
    strictness: "Normal",
    target: { port: 80, tls: { mode: "Off" } },
    rules: [{ ratelimits: [{ name: "a", limit: 1, duration: "1m", burst: 2 }] }],
  });
  expect(unknown?.toSorted()).toEqual(["spec.rules[0].ratelimits[0].burst", "spec.strictness", "spec.target.tls"]);
  expect(spec).toEqual(parse({ rules: [{ ratelimits: [{ name: "a", limit: 1, duration: "1m" }] }] }).spec);
});

test("parseSpec lists no fields for a fully known object", () => {
  expect(parse({})).not.toHaveProperty("unknown");
});

test("parseSpec reports invalid values beside unknown fields, including cross-field rules", () => {
  expect(parse({ strictness: "x", api: { name: "orders", id: "api_12345678" } }).problems).toMatchObject([
    { location: "spec.api", message: "exactly one of name and id is required" },
  ]);
  expect(parse({ strictness: "x", target: { port: "" } }).problems?.map(({ location }) => location)).toContain(
    "spec.target.port",
  );
});

test.each([
  {
    name: "of a rule that lets requests through",
    rule: { access: "Anonymous", match: { claims: [{ name: "beta", value: "1" }] } },
  },
  { name: "deep in it", rule: { match: { path: { prefix: "/", regex: "x" } } } },
])("parseSpec rejects an unknown field in the match $name, which would widen the rule", ({ rule }) => {
  expect(parse({ rules: [rule] }).problems?.[0]?.message).toBe("is not a known field");
});

test("parseSpec evaluates access references independently of unknown fields", () => {
  const target = anObject(
    "RatelimitNamespace",
    { name: "n", allowedNamespaces: ["dev"], later: 1 },
    { namespace: "prod" },
  );
  expect(mayRefer(RatelimitNamespaceSpec, target, "dev")).toBe(true);
  expect(mayRefer(RatelimitNamespaceSpec, target, "lab")).toBe(false);
});

test("parseSpec does not mutate the object", () => {
  const object = anObject("ApiKeyPolicy", { ...SPEC, strictness: "x" });
  parseSpec(ApiKeyPolicySpec, object);
  expect(object.spec).toHaveProperty("strictness");
});

test("UnknownFields condition names a few fields and ends when they are removed", () => {
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`field${i}`, 1]));
  const told = unknownFields(anObject("ApiKeyPolicy", { ...SPEC, ...many }), []);
  expect(told).toMatchObject({ status: "True", reason: "NewerSchema", alerts: true });
  expect(told?.message).toContain("spec.field4 (and 4 more)");
  const fine = anObject("ApiKeyPolicy", SPEC);
  expect(unknownFields(fine, [])).toBeUndefined();
  const before = { type: "UnknownFields", status: "True", reason: "NewerSchema", message: "" } as const;
  expect(unknownFields(fine, [{ ...before, lastTransitionTime: "2026-01-01T00:00:00Z" }])).toMatchObject({
    status: "False",
  });
});
