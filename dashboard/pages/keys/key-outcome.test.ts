import { expect, test } from "vitest";
import { EMPTY_DRAFT, type KeyDraft } from "./key-draft.ts";
import { outcomeOf } from "./key-outcome.ts";

const LIMIT = { row: 0, name: "requests", limit: 100, duration: 60_000, autoApply: true };

test.each<[Partial<KeyDraft>, string]>([
  [{}, "A key for payments, without permissions, without a limit, never expires, starting with pay_…."],
  [
    { name: " Job ", externalId: "acme", roles: ["editor"], permissions: ["a.read", "a.write"], prefix: "job" },
    "A key named “Job” for payments, owned by acme, with the role editor and the permissions a.read and a.write, without a limit, never expires, starting with job_…. Also creates the identity acme and the permission a.write.",
  ],
  [
    {
      enabled: false,
      roles: ["a", "b", "c", "d"],
      limits: [LIMIT, { ...LIMIT, row: 1, limit: 1, duration: 90_000 }, { ...LIMIT, row: 2, limit: undefined }],
      credits: "1000",
      refill: "monthly",
      refillAmount: "10",
      refillDay: "31",
      expires: "2027-02-26T23:59",
      recoverable: true,
    },
    "A disabled key for payments, with 4 roles, 100 requests per minute and 1 request per 1 min 30 s, 1000 credits and 10 more on day 31 of each month, expires on Feb 26, 2027, starting with pay_…, stored so that it can be read later.",
  ],
])("outcome of the key form %j is %j", (change, text) => {
  const draft = { ...EMPTY_DRAFT, ...change };
  const newPermissions = draft.permissions.filter((slug) => slug === "a.write");
  const api = { name: "payments", defaultPrefix: "pay" };
  expect(outcomeOf(draft, { api, newPermissions, isNewOwner: draft.externalId !== "" })).toBe(text);
});
