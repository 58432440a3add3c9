import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PERSON_ROLES } from "../../core/permissions/person-roles.ts";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { sampleCallsOf } from "./every-procedure.ts";
import { browserWith, type PersonAtPage, signIn } from "./people.ts";
import { makeResources } from "./resources.ts";
import { LEAST_ROLES, type LeastRole } from "./roles-expected.ts";

/*
 * What each dashboard role may do, for every v2 procedure and circumstance. Users with sessions call from the lowest role to the highest,
 * and so does an admin of another workspace. The table defines the lowest role; a procedure without a row fails.
 */

/** From the lowest to the highest; an admin of all workspaces also administers the installation. */
const ROLES = [...PERSON_ROLES, "installation"] as const satisfies readonly LeastRole[];

let t: TestApp;
let stranger: PersonAtPage;
beforeAll(async () => {
  const bounds = { windowMs: 60_000, address: 1e6, all: 1e6, failed: 0, nowMs: Date.now };
  t = await buildTestApp({ signIn: { bounds } });
  stranger = await signIn(t, { name: "Stranger", workspaceId: (await t.makeWorkspace()).id });
});
afterAll(() => t.close());

const personWith = (role: LeastRole, workspaceId: string): Promise<PersonAtPage> =>
  signIn(t, role === "installation" ? { name: role } : { name: role, role, workspaceId });

const kindOf = ({ body }: Reply): string | undefined => body.error?.type.split("/").at(-1);

const rowsOf = procedures.flatMap(({ path }) =>
  Object.keys(sampleCallsOf(path)).map((circumstance) => ({
    path,
    circumstance,
    name: circumstance === "always" ? path : `${path} ${circumstance}`,
  })),
);

describe.each(rowsOf)("$name", ({ path, circumstance, name }) => {
  test("procedure requires the listed dashboard role or a higher one", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    const ask = (called: string, body: unknown) => t.data(called, body, { rootKey });
    const resources = makeResources(t.deps.db, { workspaceId: id, ask });
    const make = sampleCallsOf(path)[circumstance];
    const inThere = { "postern-workspace": id };
    const foreign = await stranger.call(path, (await make?.(resources))?.body, inThere);
    expect([foreign.status, kindOf(foreign)]).toEqual([403, "no_role"]);
    const may: LeastRole[] = [];
    for (const role of ROLES) {
      const person = await personWith(role, id);
      const reply = await person.call(path, (await make?.(resources))?.body, inThere);
      if (reply.status === 200) may.push(role);
      else
        expect([reply.status, kindOf(reply), reply.body.error?.detail]).toEqual([
          403,
          "forbidden",
          expect.stringMatching(/^The role \w+ lacks /),
        ]);
    }
    const least = LEAST_ROLES[name];
    expect(may, `${name}: put it into api-server/test/roles-expected.ts`).toEqual(
      least === undefined ? [] : ROLES.slice(ROLES.indexOf(least)),
    );
  });
});

test("dashboard role table lists only existing procedures", () => {
  const names = new Set(rowsOf.map(({ name }) => name));
  expect(Object.keys(LEAST_ROLES).filter((name) => !names.has(name))).toEqual([]);
});

test("forged session cookie has no access to any procedure", async () => {
  const forged = browserWith(t, "f".repeat(43));
  for (const { path } of procedures)
    expect(kindOf(await forged.call(path))).toMatch(/^(?:session_ended|invalid_input)$/);
});
