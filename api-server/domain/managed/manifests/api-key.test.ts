import { describe, expect, test } from "vitest";
import { ApiKeySpec } from "../../../../core/manifests/api-key.ts";
import { planApiKey, type SecretState, type StoredKey } from "./api-key.ts";

const NOW_MS = Date.parse("2026-06-01T00:00:00Z");
const HOUR_MS = 3_600_000;
const manager = "main/ApiKey/shop/billing";
const apiId = "api_1";

const aKey = (id: string, more: Partial<StoredKey> = {}): StoredKey => ({
  id,
  apiId,
  name: "billing",
  createdAt: NOW_MS - 2 * HOUR_MS,
  expires: null,
  enabled: true,
  owner: null,
  roles: [],
  permissions: [],
  ratelimits: [],
  remaining: undefined,
  refill: undefined,
  ...more,
});

const plan = (keys: readonly StoredKey[], secret: SecretState, more: object = {}) => {
  const spec = ApiKeySpec.parse({ apiRef: { id: "api_12345678" }, secretRef: { name: "billing" }, ...more });
  return planApiKey({ spec, manager }, { apiId, keys, secret, nowMs: NOW_MS });
};
const holding = (keyId: string, mayIssue = false): SecretState => ({ keyId, mayIssue });

test("no steps are planned if the key in the Secret matches its spec", () => {
  expect(plan([aKey("a")], holding("a"))).toEqual({
    steps: [],
    current: aKey("a"),
    outcome: { keyId: "a", needsIssue: false, hasEnded: false },
  });
});

test.each([
  { name: "no key", secret: { mayIssue: true } },
  { name: "a key that is not stored", secret: holding("gone", true) },
])("Secret with $name gets a key that expires unless it comes into use", ({ secret }) => {
  const { steps } = plan([], secret);
  expect(steps).toMatchObject([{ type: "issue", key: { name: "billing (being issued)", expires: NOW_MS + HOUR_MS } }]);
});

test("no key is issued while the Secret cannot be written", () => {
  expect(plan([], { mayIssue: false })).toMatchObject({ steps: [], outcome: { needsIssue: true } });
});

test("key in the Secret does not count as in use if it belongs to another API or was replaced", () => {
  for (const key of [aKey("a", { apiId: "api_2" }), aKey("a", { name: "billing (replaced a)" })]) {
    expect(plan([key], holding("a", true)).steps.at(-1)).toMatchObject({ type: "issue" });
  }
});

test("issued key that the Secret does not contain is revoked, because its secret is lost", () => {
  const lost = aKey("lost", { name: "billing (being issued)" });
  expect(plan([lost, aKey("a")], holding("a")).steps).toEqual([{ type: "revoke", keyId: "lost" }]);
  expect(plan([lost], { mayIssue: true }).steps.map(({ type }) => type)).toEqual(["revoke", "issue"]);
});

describe("a rotation", () => {
  const rotation = { rotation: { every: "1h", overlap: "10m" } };

  test("successor takes over the remaining credits, and once it is in use, the former key ends after the overlap", () => {
    const credits = { credits: { remaining: 100 } };
    const former = aKey("a", { remaining: 7 });
    const { steps } = plan([former], holding("a", true), { ...rotation, ...credits });
    expect(steps).toMatchObject([{ type: "issue", successorOf: "a", key: { credits: { remaining: 7 } } }]);
    const next = aKey("b", {
      name: "billing (being issued)",
      createdAt: NOW_MS,
      expires: NOW_MS + HOUR_MS,
      remaining: 7,
    });
    expect(plan([next, former], holding("b"), { ...rotation, ...credits }).steps).toEqual([
      { type: "update", keyId: "a", changes: { name: "billing (replaced a)", expires: NOW_MS + 600_000 } },
      // It comes last, because the other key had the name until then.
      { type: "update", keyId: "b", changes: { name: "billing", expires: null } },
    ]);
  });

  test("key is not rotated while it is being issued, or if it expires before its rotation", () => {
    const issued = aKey("a", { name: "billing (being issued)" });
    expect(plan([issued], holding("a"), rotation).outcome.needsIssue).toBe(false);
    const until = { ...rotation, expires: new Date(NOW_MS + 1).toISOString() };
    const young = aKey("a", { createdAt: NOW_MS - 1, expires: NOW_MS + 1 });
    expect(plan([young], holding("a"), until).outcome).toEqual({
      keyId: "a",
      nextMs: 1,
      needsIssue: false,
      hasEnded: false,
    });
  });

  test("replaced key is revoked only after it has expired", () => {
    const replaced = (expires: number) => aKey("a", { name: "billing (replaced a)", expires });
    expect(plan([aKey("b"), replaced(NOW_MS)], holding("b")).steps).toEqual([{ type: "revoke", keyId: "a" }]);
    const later = plan([aKey("b"), replaced(NOW_MS + 5)], holding("b"));
    expect(later).toMatchObject({ steps: [], outcome: { nextMs: 5 } });
  });
});

test("expired spec issues no further key", () => {
  const expires = new Date(NOW_MS).toISOString();
  const { steps, outcome } = plan([], { mayIssue: true }, { expires });
  expect(steps).toEqual([]);
  expect(outcome).toMatchObject({ hasEnded: true, needsIssue: false });
});

test.each([
  { spec: { owner: "acme" }, changes: { externalId: "acme" } },
  { spec: { roles: ["Editor"] }, changes: { roles: ["Editor"] } },
  { spec: { permissions: ["a.read"] }, changes: { permissions: ["a.read"] } },
  { spec: { name: "other" }, changes: { name: "other" } },
  { spec: { credits: { remaining: 5 } }, changes: { credits: { remaining: 5 } } },
  {
    spec: { ratelimits: [{ name: "burst", limit: 5, duration: "1m" }] },
    changes: { ratelimits: [{ name: "burst", limit: 5, duration: 60_000, autoApply: false }] },
  },
])("key that differs from its spec only in $spec is updated only in $spec", ({ spec, changes }) => {
  expect(plan([aKey("a")], holding("a"), spec).steps).toMatchObject([{ type: "update", keyId: "a", changes }]);
});

test("spent credits and the letter case of names are not differences, but a disabled key is one", () => {
  const stored = aKey("a", { remaining: 1, roles: ["editor"], permissions: ["A.Read"] });
  const spec = { credits: { remaining: 100 }, roles: ["Editor"], permissions: ["a.read"] };
  expect(plan([stored], holding("a"), spec).steps).toEqual([]);
  const disabled = { ...stored, enabled: false };
  expect(plan([disabled], holding("a"), spec).steps).toMatchObject([{ changes: { enabled: true } }]);
  expect(plan([stored], holding("a"), { roles: ["Editor"], permissions: ["a.read"] }).steps).toMatchObject([
    { changes: { credits: null } },
  ]);
});
