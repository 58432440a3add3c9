import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { mixtures, type Step, type Story, type Teller, tell } from "./story.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const DAY_MS = 86_400_000;

/** Returns the code, the credits and the remaining amount of limit `default` in common terms. */
const verify = (asked: { slug?: string; cost?: number } = {}): Step => ({
  v1: async ({ t, kept }) => {
    const authorization = asked.slug === undefined ? {} : { authorization: { permissions: { and: [asked.slug] } } };
    const remaining = asked.cost === undefined ? {} : { remaining: { cost: asked.cost } };
    const body = { key: kept.key, ...authorization, ...remaining };
    const shown = await t.data("v1/keys.verifyKey", body, { rootKey: null });
    return [shown.valid, shown.code, shown.ratelimit?.remaining ?? "–"];
  },
  v2: async ({ t, kept }) => {
    const permissions = asked.slug === undefined ? {} : { permissions: asked.slug };
    const credits = asked.cost === undefined ? {} : { credits: { cost: asked.cost } };
    const shown = await t.data("keys.verifyKey", { key: kept.key, ...permissions, ...credits });
    const limit = shown.ratelimits?.find(({ name }: { name: string }) => name === "default");
    return [shown.valid, shown.code, limit?.remaining ?? "–"];
  },
});

const create = (path: string, words: object) => async (teller: Teller) => {
  const made = await teller.t.data(path, { apiId, permissions: ["documents.*"], ...words });
  Object.assign(teller.kept, { key: made.key, id: made.keyId });
};
const LIMIT = { limit: 4, duration: DAY_MS };

const STORY: Story = {
  created: {
    v1: create("v1/keys.createKey", { remaining: 3, ratelimit: LIMIT }),
    v2: create("keys.createKey", {
      credits: { remaining: 3 },
      ratelimits: [{ name: "default", ...LIMIT, autoApply: true }],
    }),
  },
  first: verify({ slug: "documents.read" }),
  "without the permission": verify({ slug: "users.read" }),
  "too dear": verify({ cost: 3 }),
  "the last credits": verify({ cost: 2 }),
  "no credit left": verify(),
  "over the limit": verify(),
};

test.each(mixtures(Object.keys(STORY).length))(
  "v1 and v2 agree on a verification by %s %s %s %s %s %s %s",
  async (...by) => {
    expect(await tell(t, STORY, by)).toEqual({
      first: [true, "VALID", 3],
      "without the permission": [false, "INSUFFICIENT_PERMISSIONS", "–"],
      "too dear": [false, "USAGE_EXCEEDED", 2],
      "the last credits": [true, "VALID", 1],
      "no credit left": [false, "USAGE_EXCEEDED", 0],
      "over the limit": [false, "RATE_LIMITED", 0],
    });
  },
);
