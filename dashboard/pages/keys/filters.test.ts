import { expect, test } from "vitest";
import { readFilters, searchBody } from "./filters.ts";

test("key list applies only known filters from the URL", () => {
  expect(
    readFilters({
      api: "api_1",
      by: "secret",
      q: 42,
      state: "maybe",
      expires: "365d",
      credits: "yes",
      managed: true,
      role: "",
      key: "prod_x",
      hash: "x",
    }),
  ).toEqual({ api: "api_1", q: "42", credits: "yes" });
  expect(readFilters({ q: "x".repeat(1000) }).q).toHaveLength(255);
});

test.each([
  [{}, {}],
  [{ q: "Bill" }, { name: "Bill" }],
  [
    { by: "owner", q: "user_1", api: "api_1" },
    { externalId: "user_1", apiId: "api_1" },
  ],
  [{ by: "start", q: "prod_" }, { start: "prod_" }],
  [{ by: "keyId", q: "key_1" }, { keyId: "key_1" }],
  [{ by: "owner" }, {}],
  [{ state: "enabled" }, { enabled: true, expired: false }],
  [{ state: "disabled" }, { enabled: false }],
  [{ state: "expired" }, { expired: true }],
  [{ expires: "7d" }, { expiresBefore: 604_860_000 }],
  [
    { expires: "90d", state: "enabled" },
    { enabled: true, expired: false, expiresBefore: 7_776_060_000 },
  ],
  [
    { credits: "no", managed: "yes", role: "editor", permission: "a.b" },
    { limited: false, managed: true, role: "editor", permission: "a.b" },
  ],
] as const)("key list filter %j requests %j", (filters, body) => expect(searchBody(filters, 119_999)).toEqual(body));
