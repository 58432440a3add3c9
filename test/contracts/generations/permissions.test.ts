import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { mixtures, type Story, statusOf, type Teller, tell } from "./story.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

/** Permissions and roles are alike in v1 and v2, except that v1 reads and deletes by id only. */
const storyOf = (noun: "permission" | "role"): Story => {
  const Noun = noun === "permission" ? "Permission" : "Role";
  const id = `${noun}Id`;
  const create = (prefix: string) => async (teller: Teller) => {
    const name = teller.unique;
    const body = { name, description: "What it is for.", ...(noun === "permission" ? { slug: name } : {}) };
    const made = await teller.t.data(`${prefix}permissions.create${Noun}`, body);
    teller.kept.id = made[id];
    return made;
  };
  const again = (prefix: string) => (teller: Teller) =>
    statusOf(teller.t, `${prefix}permissions.create${Noun}`, {
      name: teller.unique.toUpperCase(),
      ...(noun === "permission" ? { slug: teller.unique.toUpperCase() } : {}),
    });
  const list = (all: readonly { id: string }[], { kept }: Teller) => all.filter((one) => one.id === kept.id);
  return {
    created: { v1: create("v1/"), v2: create("") },
    "refused in other letters": { v1: again("v1/"), v2: again("") },
    seen: {
      v1: ({ t, kept }) => t.data(`v1/permissions.get${Noun}`, { [id]: kept.id }),
      v2: ({ t, kept }) => t.data(`permissions.get${Noun}`, { [noun]: kept.id }),
    },
    listed: {
      v1: async (teller) => list(await teller.t.data(`v1/permissions.list${Noun}s`, {}), teller),
      v2: async (teller) => list(await teller.t.data(`permissions.list${Noun}s`, { search: teller.unique }), teller),
    },
    deleted: {
      v1: ({ t, kept }) => statusOf(t, `v1/permissions.delete${Noun}`, { [id]: kept.id }),
      v2: ({ t, kept }) => statusOf(t, `permissions.delete${Noun}`, { [noun]: kept.id }),
    },
    "gone afterwards": {
      v1: ({ t, kept }) => statusOf(t, `v1/permissions.get${Noun}`, { [id]: kept.id }),
      v2: ({ t, kept }) => statusOf(t, `permissions.get${Noun}`, { [noun]: kept.id }),
    },
  };
};

describe.each(["permission", "role"] as const)("a %s", (noun) => {
  const story = storyOf(noun);
  test.each(mixtures(Object.keys(story).length))("v1 and v2 agree on changes by %s %s %s %s %s %s", async (...by) => {
    const shown = {
      id: "<id>",
      name: "<unique>",
      description: "What it is for.",
      ...(noun === "permission" ? { slug: "<unique>" } : {}),
    };
    expect(await tell(t, story, by)).toEqual({
      created: { [`${noun}Id`]: "<id>" },
      "refused in other letters": 409,
      seen: shown,
      listed: [shown],
      deleted: 200,
      "gone afterwards": 404,
    });
  });
});
