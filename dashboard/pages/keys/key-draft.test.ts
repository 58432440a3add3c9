import { expect, test } from "vitest";
import { createBody, draftOf, EMPTY_DRAFT, type KeyDraft, problemsOf, updateBody } from "./key-draft.ts";

const KEY = {
  keyId: "key_1",
  start: "prod_1",
  enabled: true,
  createdAt: 1,
  name: "Billing",
  meta: { plan: "pro" },
  expires: new Date(2030, 0, 2, 3, 4, 5, 6).getTime(),
  credits: { remaining: 5, refill: { interval: "monthly" as const, amount: 10, refillDay: 31 } },
  identity: { id: "id_1", externalId: "user_1" },
  ratelimits: [{ id: "rl_1", name: "requests", limit: 10, duration: 90_000, autoApply: true }],
};

const LIMIT = { row: 0, name: "abc", limit: 1, duration: 60_000, autoApply: false };

test("empty key form creates a key with only its API", () => {
  expect(problemsOf(EMPTY_DRAFT)).toEqual({});
  expect(createBody("api_1", EMPTY_DRAFT)).toEqual({ apiId: "api_1", enabled: true, recoverable: false });
});

test("complete key form sends all of its fields", () => {
  const draft: KeyDraft = {
    ...draftOf(KEY),
    roles: ["editor", "viewer"],
    permissions: ["a.read"],
    prefix: "prod",
    byteLength: "24",
  };
  expect(problemsOf(draft)).toEqual({});
  expect(createBody("api_1", draft)).toEqual({
    apiId: "api_1",
    enabled: true,
    recoverable: false,
    prefix: "prod",
    byteLength: 24,
    name: "Billing",
    externalId: "user_1",
    meta: { plan: "pro" },
    expires: new Date(2030, 0, 2, 3, 4).getTime(),
    credits: KEY.credits,
    ratelimits: [{ name: "requests", limit: 10, duration: 90_000, autoApply: true }],
    roles: ["editor", "viewer"],
    permissions: ["a.read"],
  });
});

test.each<[Partial<KeyDraft>, object]>([
  [{}, {}],
  [{ name: "" }, { name: null }],
  [
    { name: "Other", enabled: false },
    { name: "Other", enabled: false },
  ],
  [{ externalId: " " }, { externalId: null }],
  [{ meta: "" }, { meta: null }],
  [{ meta: '{"plan":"free"}' }, { meta: { plan: "free" } }],
  [{ expires: "" }, { expires: null }],
  [{ expires: "2031-01-01T00:00" }, { expires: new Date(2031, 0, 1).getTime() }],
  [{ credits: "7" }, { credits: { remaining: 7 } }],
  [{ credits: "", refill: "none" }, { credits: null }],
  [{ refill: "none" }, { credits: { refill: null } }],
  [{ refill: "daily" }, { credits: { refill: { interval: "daily", amount: 10 } } }],
  [{ refillDay: "1" }, { credits: { refill: { interval: "monthly", amount: 10, refillDay: 1 } } }],
  [{ limits: [] }, { ratelimits: [] }],
])("key form with the changes %j sends only %j", (change, body) => {
  const before = draftOf(KEY);
  expect(updateBody("key_1", before, { ...before, ...change })).toEqual({ keyId: "key_1", ...body });
});

test.each<[Partial<KeyDraft>, keyof KeyDraft]>([
  [{ meta: "[1]" }, "meta"],
  [{ meta: "{" }, "meta"],
  [{ credits: "-1" }, "credits"],
  [{ refill: "daily", refillAmount: "5" }, "credits"],
  [{ credits: "1", refill: "daily" }, "refillAmount"],
  [{ credits: "1", refill: "monthly", refillAmount: "5", refillDay: "32" }, "refillDay"],
  [{ limits: [{ ...LIMIT, name: "ab" }] }, "limits"],
  [{ limits: [{ ...LIMIT, limit: 0 }] }, "limits"],
  [{ limits: [{ ...LIMIT, limit: undefined }] }, "limits"],
  [{ limits: [{ ...LIMIT, duration: 10 }] }, "limits"],
  // The server would apply only the last one.
  [{ limits: [LIMIT, { ...LIMIT, row: 1, name: " abc" }] }, "limits"],
  [{ roles: Array.from({ length: 101 }, (_, i) => `role-${i}`) }, "roles"],
  [{ permissions: Array.from({ length: 1001 }, (_, i) => `a.${i}`) }, "permissions"],
  [{ byteLength: "15" }, "byteLength"],
])("key form rejects the value %j in the field %s", (change, field) =>
  expect(Object.keys(problemsOf({ ...EMPTY_DRAFT, ...change }))).toEqual([field]),
);
