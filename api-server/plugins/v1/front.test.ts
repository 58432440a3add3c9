import { expect, test } from "vitest";
import { createV1Front } from "./front.ts";

test("v1 responses have a Deprecation header and a relative link to the v2 procedure by default", () => {
  const headers = createV1Front({ isServed: true }).headersOf("keys.createKey");
  expect(headers).toEqual({
    Deprecation: "@1767225600",
    Link: '</v2/keys.createKey>; rel="successor-version"',
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": expect.stringMatching(/^X-Request-Id, Deprecation, Sunset, Link, Retry-After, /),
  });
});

test("v1 response has Sunset and the full successor URL when configured", () => {
  const sunsetMs = Date.parse("2027-06-30T00:00:00Z");
  const front = createV1Front({ isServed: true, sunsetMs, apiUrl: "https://api.example.com" });
  expect(front.headersOf("keys.createKey")).toMatchObject({
    Sunset: "Wed, 30 Jun 2027 00:00:00 GMT",
    Link: '<https://api.example.com/v2/keys.createKey>; rel="successor-version"',
  });
});

test("unknown v1 path has no successor", () => {
  expect(createV1Front({ isServed: true }).headersOf()).not.toHaveProperty("Link");
});

test("disabled v1 API rejects requests and names the successor", () => {
  expect(createV1Front({ isServed: true }).refusalOf("keys.createKey")).toBeUndefined();
  const refusal = createV1Front({ isServed: false }).refusalOf("keys.createKey");
  expect(refusal?.()).toMatchObject({ kind: "api_v1_disabled", detail: expect.stringContaining("/v2/keys.createKey") });
});
