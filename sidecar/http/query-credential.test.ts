import { expect, test } from "vitest";
import { compileQueryReader } from "./query-credential.ts";

const read = compileQueryReader([
  { in: "header", name: "X-API-Key" },
  { in: "query", name: "api_key" },
]);

test.each([
  { name: "alone", query: "?api_key=k1", credential: "k1", rest: "" },
  { name: "between others, whose bytes stay", query: "?a=%7e&api_key=k1&b", credential: "k1", rest: "?a=%7e&b" },
  { name: "with an escaped name", query: "?api%5Fkey=k1", credential: "k1", rest: "" },
  { name: "with an escaped value", query: "?api_key=k%31", credential: "k1", rest: "" },
  { name: "without a value", query: "?api_key", credential: "", rest: "" },
  { name: "not there", query: "?api_keys=k1&&x=", credential: undefined, rest: "?api_keys=k1&&x=" },
  { name: "no query at all", query: "", credential: undefined, rest: "" },
  { name: "also with bytes that are not UTF-8", query: "?%ff=1&api%5fkey=k1", credential: "k1", rest: "?%ff=1" },
])("query credential is found and removed: $name", ({ query, credential, rest }) => {
  expect(read?.(query)).toMatchObject({ credential, query: rest, duplicate: false });
});

test("two query credentials, even with an escaped name, are rejected as duplicates and both removed", () => {
  expect(read?.("?api_key=a&x=1&api%5fkey=b")).toMatchObject({ duplicate: true, query: "?x=1" });
});

test("query credential has the precedence that the policy defines", () => {
  expect(read?.("?api_key=a")?.credentialAt).toBe(1);
});

test("gate ignores the query when the policy defines no query credential", () => {
  expect(compileQueryReader([{ in: "header", name: "X-API-Key" }])).toBeUndefined();
});
