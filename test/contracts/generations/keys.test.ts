import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { mixtures, type Step, type Story, statusOf, type Teller, tell } from "./story.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const DAY_MS = 86_400_000;
const REFILL = { interval: "monthly", amount: 5, refillDay: 3 };
const LIMIT = { limit: 20, duration: DAY_MS };
/** A named limit in v2 form; v1 supports only this one. */
const asNamed = (limit: object) => [{ name: "default", ...limit, autoApply: true }];

const create = (path: string, words: object) => async (teller: Teller) => {
  const { unique } = teller;
  const common = { apiId, name: unique, externalId: unique, meta: { of: unique }, permissions: [`${unique}.read`] };
  const made = await teller.t.data(path, { ...common, ...words });
  Object.assign(teller.kept, { key: made.key, id: made.keyId });
  return Object.keys(made).sort();
};

/** The values that v1 and v2 both return, in v2 terms. */
const READ: Step = {
  v1: async ({ t, kept }) => {
    const shown = await t.data("v1/keys.getKey", { keyId: kept.id });
    const { id: keyId, name, meta, permissions, enabled, remaining, refill, ratelimit, identity } = shown;
    const { lastRefillAt: _, ...rest } = refill ?? {};
    return {
      keyId,
      name,
      meta,
      permissions,
      enabled,
      credits: remaining === undefined ? undefined : { remaining, refill: refill && rest },
      limit: ratelimit && { limit: ratelimit.limit, duration: ratelimit.duration },
      externalId: identity?.externalId,
    };
  },
  v2: async ({ t, kept }) => {
    const shown = await t.data("keys.getKey", { keyId: kept.id });
    const { keyId, name, meta, permissions = [], enabled, credits, ratelimits = [], identity } = shown;
    const [limit] = ratelimits;
    return {
      keyId,
      name,
      meta,
      permissions,
      enabled,
      credits,
      limit: limit && { limit: limit.limit, duration: limit.duration },
      externalId: identity?.externalId,
    };
  },
};

const STORY: Story = {
  created: {
    v1: create("v1/keys.createKey", { remaining: 9, refill: REFILL, ratelimit: LIMIT }),
    v2: create("keys.createKey", { credits: { remaining: 9, refill: REFILL }, ratelimits: asNamed(LIMIT) }),
  },
  "seen when it is new": READ,
  changed: {
    v1: ({ t, kept, unique }) =>
      statusOf(t, "v1/keys.updateKey", {
        keyId: kept.id,
        name: null,
        externalId: `${unique}.2`,
        refill: null,
        ratelimit: { limit: 2, duration: 1000 },
        enabled: false,
      }),
    v2: ({ t, kept, unique }) =>
      statusOf(t, "keys.updateKey", {
        keyId: kept.id,
        name: null,
        externalId: `${unique}.2`,
        credits: { refill: null },
        ratelimits: asNamed({ limit: 2, duration: 1000 }),
        enabled: false,
      }),
  },
  "seen when it is changed": READ,
  "given credits": {
    v1: async ({ t, kept }) =>
      (await t.data("v1/keys.updateRemaining", { keyId: kept.id, op: "increment", value: 3 })).remaining,
    v2: async ({ t, kept }) =>
      (await t.data("keys.updateCredits", { keyId: kept.id, operation: "increment", value: 3 })).remaining,
  },
  "whose secret it is": {
    v1: async ({ t, kept }) => (await t.data("v1/keys.whoami", { key: kept.key })).id,
    v2: async ({ t, kept }) => (await t.data("keys.whoami", { key: kept.key })).keyId,
  },
  deleted: {
    v1: ({ t, kept }) => statusOf(t, "v1/keys.deleteKey", { keyId: kept.id }),
    v2: ({ t, kept }) => statusOf(t, "keys.deleteKey", { keyId: kept.id }),
  },
  "gone afterwards": {
    v1: ({ t, kept }) => statusOf(t, "v1/keys.getKey", { keyId: kept.id }),
    v2: ({ t, kept }) => statusOf(t, "keys.getKey", { keyId: kept.id }),
  },
};

test.each(mixtures(Object.keys(STORY).length))(
  "v1 and v2 agree on a key changed by %s %s %s %s %s %s %s %s",
  async (...by) => {
    const always = { keyId: "<id>", meta: { of: "<unique>" }, permissions: ["<unique>.read"] };
    expect(await tell(t, STORY, by)).toEqual({
      created: ["key", "keyId"],
      "seen when it is new": {
        ...always,
        name: "<unique>",
        enabled: true,
        credits: { remaining: 9, refill: REFILL },
        limit: LIMIT,
        externalId: "<unique>",
      },
      changed: 200,
      "seen when it is changed": {
        ...always,
        enabled: false,
        credits: { remaining: 9 },
        limit: { limit: 2, duration: 1000 },
        externalId: "<unique>.2",
      },
      "given credits": 12,
      "whose secret it is": "<id>",
      deleted: 200,
      "gone afterwards": 404,
    });
  },
);
