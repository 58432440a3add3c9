import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { mixtures, type Story, statusOf, type Teller, tell } from "./story.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

interface Shown {
  readonly externalId: string;
  readonly meta?: object;
  readonly ratelimits?: readonly { name: string; limit: number; duration: number }[];
}

/** v2 omits empty values. */
const shown = ({ externalId, meta = {}, ratelimits = [] }: Shown) => ({
  externalId,
  meta,
  ratelimits: ratelimits.map(({ name, limit, duration }) => ({ name, limit, duration })),
});

const NEW = { meta: { plan: "pro" }, ratelimits: [{ name: "requests", limit: 5, duration: 60_000 }] };
const CHANGE = { meta: { plan: "free" }, ratelimits: [{ name: "tokens", limit: 7, duration: 1000 }] };

const create = (path: string) => async (teller: Teller) => {
  const made = await teller.t.data(path, { externalId: teller.unique, ...NEW });
  teller.kept.identity = made.identityId;
  return Object.keys(made);
};
const again = (path: string) => (teller: Teller) => statusOf(teller.t, path, { externalId: teller.unique });

const READ = {
  v1: async ({ t, unique }: Teller) => shown(await t.data("v1/identities.getIdentity", { externalId: unique })),
  v2: async ({ t, unique }: Teller) => shown(await t.data("identities.getIdentity", { identity: unique })),
};

const STORY: Story = {
  created: { v1: create("v1/identities.createIdentity"), v2: create("identities.createIdentity") },
  "seen when it is new": READ,
  "refused a second time": { v1: again("v1/identities.createIdentity"), v2: again("identities.createIdentity") },
  changed: {
    v1: async ({ t, kept }) =>
      shown(await t.data("v1/identities.updateIdentity", { identityId: kept.identity, ...CHANGE })),
    v2: async ({ t, kept }) => shown(await t.data("identities.updateIdentity", { identity: kept.identity, ...CHANGE })),
  },
  "seen when it is changed": READ,
  deleted: {
    v1: ({ t, kept }) => statusOf(t, "v1/identities.deleteIdentity", { identityId: kept.identity }),
    v2: ({ t, kept }) => statusOf(t, "identities.deleteIdentity", { identity: kept.identity }),
  },
  "gone afterwards": {
    v1: ({ t, unique }) => statusOf(t, "v1/identities.getIdentity", { externalId: unique }),
    v2: ({ t, unique }) => statusOf(t, "identities.getIdentity", { identity: unique }),
  },
};

test.each(mixtures(Object.keys(STORY).length))(
  "v1 and v2 agree on an identity changed by %s %s %s %s %s %s %s",
  async (...by) => {
    expect(await tell(t, STORY, by)).toEqual({
      created: ["identityId"],
      "seen when it is new": { externalId: "<unique>", ...NEW },
      "refused a second time": 409,
      changed: { externalId: "<unique>", ...CHANGE },
      "seen when it is changed": { externalId: "<unique>", ...CHANGE },
      deleted: 200,
      "gone afterwards": 404,
    });
  },
);
