import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NeededPermission } from "../needed-permissions.ts";
import { buildOpenApi } from "../plugins/openapi.ts";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { EXPECTED, type Expected } from "./permissions-expected.ts";
import { absent, findReferences, type OpenApi, oneOfEach, valueIn, withValue } from "./references.ts";
import { type SampleCall, sampleCallsOf } from "./sample-calls.ts";
import { makeThings, type Things } from "./things.ts";

/*
 * Of every procedure there is: what it declares is what the interface promises, and what it does is what it declares. Each
 * call is tried without a root key, with each of the permissions missing, and with exactly those that it needs.
 */

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

/** Things of a workspace in which nothing else is. */
async function emptyWorkspace(): Promise<Things> {
  const { id, rootKey } = await t.makeWorkspace();
  return makeThings(t.deps.db, { workspaceId: id, ask: (path, body) => t.data(path, body, { rootKey }) });
}

/** Grants without effect: only whole tuples count. */
const TOO_WIDE = ["*", "*.*.*", "api.*", "api.*.*", "rbac.*.*", "identity.*.*", "ratelimit.*.*"];

const ID = /<(\w+)>/;
const withStar = (permission: string): string => permission.replace(ID, "*");

/** The form with the id, or with `id` in its place; undefined where no such form exists, or the call is about none yet. */
function withId(permission: string, call: SampleCall, id?: string): string | undefined {
  const ofCall = call[ID.exec(permission)?.[1] as "apiId" | "namespaceId" | "identityId"];
  return ofCall === undefined ? undefined : permission.replace(ID, id ?? ofCall);
}

const toText = ({ tuple, orFor }: NeededPermission): string =>
  orFor === undefined ? tuple : tuple.replace("*", `<${orFor}>`);

describe.each(procedures.map(({ path }) => path))("%s", (path) => {
  const expected = EXPECTED[path];
  const declared = Object.values<NeededPermission>(
    procedures.find((procedure) => procedure.path === path)?.permissions ?? {},
  );

  test("declares what the interface promises", () => {
    if (expected === undefined) {
      throw new Error(`${path} is not in api-server/test/permissions-expected.ts: say there what it needs`);
    }
    const of = (conditional: boolean) =>
      new Set(declared.filter(({ when }) => (when !== undefined) === conditional).map(toText));
    expect(of(false)).toEqual(new Set(expected.needs));
    expect(of(true)).toEqual(new Set(Object.values(expected.also ?? {}).flat()));
    expect(Object.keys(sampleCallsOf(path))).toEqual(expect.arrayContaining(Object.keys(expected.also ?? {})));
  });

  test.each(Object.entries(sampleCallsOf(path)))("asks for exactly that: %s", async (circumstance, makeCall) => {
    const { needs, also, hidesIds = false, strangersLearnNoId = false } = expected as Expected;
    const needed = [...needs, ...(also?.[circumstance] ?? [])];
    const things = await emptyWorkspace();
    const { workspaceId } = things;
    const call = await makeCall(things);
    const tryWith = async (permissions: readonly string[] | null): Promise<Reply> =>
      t.call(path, call.body, { rootKey: permissions === null ? null : await t.rootKey(permissions, { workspaceId }) });

    const without = await tryWith(null);
    expect([without.status, without.body.error.title]).toEqual([401, "Unauthorized"]);
    for (const missing of needed) {
      const others = needed.filter((one) => one !== missing).map(withStar);
      const forOther = withId(missing, call, things.name("other")) ?? missing.replace("*", "some_id");
      // Without it, and with what looks like it.
      for (const held of [others, [...others, ...TOO_WIDE], [...others, forOther]]) {
        const refused = await tryWith(held);
        if (hidesIds && held.includes(forOther)) {
          expect(refused.body.data).toEqual({ valid: false, code: "NOT_FOUND" });
          continue;
        }
        expect([refused.status, refused.body.error?.title], `with ${held.join(", ")}`).toEqual([403, "Forbidden"]);
        const { detail } = refused.body.error;
        expect(detail).toContain(withStar(missing));
        const learnsId = !hidesIds && (!strangersLearnNoId || held.includes(forOther));
        if (learnsId) expect(detail).toContain(withId(missing, call) ?? withStar(missing));
        for (const tuple of others) expect(detail).not.toContain(tuple);
      }
    }
    // None of the refusals has done what was refused.
    const exact = await tryWith(needed.map(withStar));
    expect(exact.body.error).toBeUndefined();
    expect(exact.status).toBe(200);
  });

  test.each(Object.entries(sampleCallsOf(path)))(
    "the id does as well as the star: %s",
    async (circumstance, makeCall) => {
      const { needs, also } = expected as Expected;
      const things = await emptyWorkspace();
      const { workspaceId } = things;
      const call = await makeCall(things);
      const held = [...needs, ...(also?.[circumstance] ?? [])].map((one) => withId(one, call) ?? withStar(one));
      const reply = await t.call(path, call.body, { rootKey: await t.rootKey(held, { workspaceId }) });
      expect(reply.body.error).toBeUndefined();
      expect(reply.status).toBe(200);
    },
  );
});

const referencesByPath = findReferences(buildOpenApi(procedures) as unknown as OpenApi);

describe.each([...referencesByPath])("%s", (path, references) => {
  const { lookedUpFirst = [] } = EXPECTED[path] ?? {};
  test("looks these up before it looks at permissions, and no others", async () => {
    const things = await emptyWorkspace();
    const { workspaceId } = things;
    const each = await oneOfEach(things);
    const rootKey = await t.rootKey([], { workspaceId });
    const found: string[] = [];
    for (const makeCall of Object.values(sampleCallsOf(path))) {
      const call = await makeCall(things);
      for (const reference of references.filter(
        (one) => one.field !== "cursor" && valueIn(call.body, one) !== undefined,
      )) {
        for (const value of reference.values(each, call.body)) {
          const reply = await t.call(path, withValue(call.body, reference, absent(value)), { rootKey });
          if (reply.status === 404) found.push(reference.field);
          else expect(reply.status, `${reference.field}: ${JSON.stringify(reply.body)}`).toBe(403);
        }
      }
    }
    expect(new Set(found)).toEqual(new Set(lookedUpFirst));
  });
});

test("nothing is expected of a procedure that is not there", () => {
  const paths = new Set<string>(procedures.map(({ path }) => path));
  expect(Object.keys(EXPECTED).filter((path) => !paths.has(path))).toEqual([]);
});
