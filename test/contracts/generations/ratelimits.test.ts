import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { mixtures, type Step, type Story, statusOf, type Teller, tell } from "./story.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const DAY_MS = 86_400_000;
const request = ({ unique }: Teller) => ({ namespace: unique, identifier: "u", limit: 2, duration: DAY_MS });

const count = (path: string) => async (teller: Teller) => {
  const { success, limit, remaining } = await teller.t.data(path, request(teller));
  return [success, limit, remaining];
};
const COUNT: Step = { v1: count("v1/ratelimits.limit"), v2: count("ratelimit.limit") };

const override = { identifier: "u", limit: 9, duration: DAY_MS };

const STORY: Story = {
  first: COUNT,
  second: COUNT,
  "used up": COUNT,
  raised: {
    v1: ({ t, unique }) => statusOf(t, "v1/ratelimits.setOverride", { namespaceName: unique, ...override }),
    v2: ({ t, unique }) => statusOf(t, "ratelimit.setOverride", { namespace: unique, ...override }),
  },
  "goes on from the same count": COUNT,
  "the override": {
    v1: async ({ t, unique }) => {
      const { limit } = await t.data("v1/ratelimits.getOverride", { namespaceName: unique, identifier: "u" });
      return limit;
    },
    v2: async ({ t, unique }) => (await t.data("ratelimit.getOverride", { namespace: unique, identifier: "u" })).limit,
  },
  lowered: {
    v1: ({ t, unique }) => statusOf(t, "v1/ratelimits.deleteOverride", { namespaceName: unique, identifier: "u" }),
    v2: ({ t, unique }) => statusOf(t, "ratelimit.deleteOverride", { namespace: unique, identifier: "u" }),
  },
  "used up again": COUNT,
};

test.each(mixtures(Object.keys(STORY).length))(
  "v1 and v2 agree on a limit changed by %s %s %s %s %s %s %s %s",
  async (...by) => {
    expect(await tell(t, STORY, by)).toEqual({
      first: [true, 2, 1],
      second: [true, 2, 0],
      "used up": [false, 2, 0],
      raised: 200,
      "goes on from the same count": [true, 9, 6],
      "the override": 9,
      lowered: 200,
      "used up again": [false, 2, 0],
    });
  },
);
