import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RequiredPermission } from "../domain/permissions/required-permissions.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { everyProcedure, everyReference, isSuccess, sampleCallsOf } from "./every-procedure.ts";
import { type Expected, EXPECTED as V2_EXPECTED } from "./permissions-expected.ts";
import { V1_EXPECTED } from "./permissions-expected-v1.ts";
import { absent, oneOfEach, valueIn, withValue } from "./references.ts";
import { isOfV1 } from "./request.ts";
import { makeResources, type Resources } from "./resources.ts";
import type { SampleCall } from "./sample-calls.ts";

/*
 * Every procedure declares the documented permissions and enforces exactly those. Each call is made without a root key, with each
 * permission missing, and with exactly the required permissions.
 */

const EXPECTED: Readonly<Record<string, Expected>> = { ...V2_EXPECTED, ...V1_EXPECTED };

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

/** Returns the resources of a new, empty workspace. */
async function emptyWorkspace(): Promise<Resources> {
  const { id, rootKey } = await t.makeWorkspace();
  return makeResources(t.deps.db, { workspaceId: id, ask: (path, body) => t.data(path, body, { rootKey }) });
}

/** Invalid permissions that grant nothing, because only complete tuples count. */
const TOO_WIDE = ["*", "*.*.*", "api.*", "api.*.*", "rbac.*.*", "identity.*.*", "ratelimit.*.*"];

const ID = /<(\w+)>/;
const withStar = (permission: string): string => permission.replace(ID, "*");

/**
 * Returns the permission with the id of the call, or with `id`; `undefined` if that form does not exist or the object does not exist yet.
 */
function withId(permission: string, call: SampleCall, id?: string): string | undefined {
  const ofCall = call[ID.exec(permission)?.[1] as "apiId" | "namespaceId" | "identityId" | "environment"];
  return ofCall === undefined ? undefined : permission.replace(ID, id ?? ofCall);
}

const toText = ({ tuple, orFor }: RequiredPermission): string =>
  orFor === undefined ? tuple : tuple.replace("*", `<${orFor}>`);

/** Returns status and title of a rejection (v1: the code). */
const refusalOf = ({ status, body: { error } }: Reply): unknown[] => [status, error?.title ?? error?.code];
const detailOf = ({ body: { error } }: Reply): string => error.detail ?? error.message;

describe.each(everyProcedure)("$path", ({ path, permissions: declared, isOpen }) => {
  const expected = EXPECTED[path];
  const refusals = isOfV1(path)
    ? { unauthorized: "UNAUTHORIZED", forbidden: "INSUFFICIENT_PERMISSIONS" }
    : { unauthorized: "Unauthorized", forbidden: "Forbidden" };

  test("procedure declares exactly the documented permissions", () => {
    if (expected === undefined) {
      throw new Error(
        `${path} is not in api-server/test/permissions-expected${isOfV1(path) ? "-v1" : ""}.ts: say there what it needs`,
      );
    }
    const of = (conditional: boolean) =>
      new Set(declared.filter(({ when }) => (when !== undefined) === conditional).map(toText));
    expect(of(false)).toEqual(new Set(expected.needs));
    const { also = {}, orElse = {} } = expected;
    expect(of(true)).toEqual(new Set([...Object.values(also).flat(), ...Object.values(orElse)]));
    expect(Object.keys(sampleCallsOf(path))).toEqual(expect.arrayContaining(Object.keys(expected.also ?? {})));
  });

  test.each(Object.entries(sampleCallsOf(path)))(
    "procedure requires exactly its declared permissions: %s",
    async (circumstance, makeCall) => {
      const { needs, also, hidesIds = false, narrows = false, strangersLearnNoId = false } = expected as Expected;
      const { refusedAsUnauthorized, refusedAsNotFound, grants = [] } = expected as Expected;
      const required = [...needs, ...(also?.[circumstance] ?? [])];
      const resources = await emptyWorkspace();
      const { workspaceId } = resources;
      const call = await makeCall(resources);
      const tryWith = async (permissions: readonly string[] | null): Promise<Reply> =>
        t.call(path, call.body, {
          rootKey: permissions === null ? null : await t.rootKey(permissions, { workspaceId }),
        });

      if (!isOpen) expect(refusalOf(await tryWith(null))).toEqual([401, refusals.unauthorized]);
      for (const missing of required) {
        const others = required.filter((one) => one !== missing).map(withStar);
        const forOther = withId(missing, call, resources.name("other")) ?? missing.replace("*", "some_id");
        // Calls without the permission and with similar but invalid ones.
        for (const held of [others, [...others, ...TOO_WIDE], [...others, forOther]]) {
          const refused = await tryWith(held);
          if (hidesIds && held.includes(forOther)) {
            expect(refused.body.data).toEqual({ valid: false, code: "NOT_FOUND" });
            continue;
          }
          // Skips a call that names its object.
          const namesObject = (expected?.lookedUpFirst ?? []).some((field) => field in (call.body as object));
          if (narrows && !namesObject && held.includes(forOther)) {
            const { data } = refused.body;
            expect([refused.status, Array.isArray(data) ? data : data.rows]).toEqual([200, []]);
            continue;
          }
          const code = refusedAsUnauthorized?.includes(missing) ? refusals.unauthorized : refusals.forbidden;
          const isNotFound = refusedAsNotFound?.includes(missing) === true;
          expect(refusalOf(refused), `with ${held.join(", ")}`).toEqual(isNotFound ? [404, "NOT_FOUND"] : [403, code]);
          const detail = detailOf(refused);
          expect(detail).toContain(withStar(missing));
          const learnsId = !hidesIds && (!strangersLearnNoId || held.includes(forOther));
          if (learnsId) expect(detail).toContain(withId(missing, call) ?? withStar(missing));
          for (const tuple of others) expect(detail).not.toContain(tuple);
        }
      }
      // The rejected calls have had no effect.
      const exact = await tryWith(isOpen ? null : [...required.map(withStar), ...grants]);
      expect(exact.body.error).toBeUndefined();
      expect(isSuccess(exact)).toBe(true);
    },
  );

  test.each(Object.entries(sampleCallsOf(path)))(
    "permission for the single id is sufficient: %s",
    async (circumstance, makeCall) => {
      const { needs, also, grants = [] } = expected as Expected;
      const resources = await emptyWorkspace();
      const { workspaceId } = resources;
      const call = await makeCall(resources);
      const required = [...needs, ...(also?.[circumstance] ?? [])].map((one) => withId(one, call) ?? withStar(one));
      const held = [...required, ...grants];
      const reply = await t.call(path, call.body, { rootKey: await t.rootKey(held, { workspaceId }) });
      expect(reply.body.error).toBeUndefined();
      expect(isSuccess(reply)).toBe(true);
    },
  );

  const { needs = [], also = {}, orElse = {} } = expected ?? {};
  const replaceable = Object.entries(also).filter(([, more]) => more.some((one) => one in orElse));
  if (replaceable.length === 0) return;
  test.each(replaceable)("alternative permission is sufficient: %s", async (circumstance, more) => {
    const resources = await emptyWorkspace();
    const { workspaceId } = resources;
    const makeCall = sampleCallsOf(path)[circumstance];
    const { body } = (await makeCall?.(resources)) ?? {};
    const held = [...needs, ...more].map((one) => withStar(orElse[one] ?? one));
    const reply = await t.call(path, body, { rootKey: await t.rootKey(held, { workspaceId }) });
    expect([reply.status, reply.body.error]).toEqual([200, undefined]);
  });
});

const withRootKey = [...everyReference()].filter(([path]) =>
  everyProcedure.some((one) => one.path === path && !one.isOpen),
);

describe.each(withRootKey)("%s", (path, references) => {
  const { lookedUpFirst = [] } = EXPECTED[path] ?? {};
  test("procedure looks up only its declared objects before checking permissions", async () => {
    const resources = await emptyWorkspace();
    const { workspaceId } = resources;
    const each = await oneOfEach(resources);
    const rootKey = await t.rootKey([], { workspaceId });
    const found: string[] = [];
    for (const makeCall of Object.values(sampleCallsOf(path))) {
      const call = await makeCall(resources);
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

test("expected permissions list only existing procedures", () => {
  const paths = new Set<string>(everyProcedure.map(({ path }) => path));
  expect(Object.keys(EXPECTED).filter((path) => !paths.has(path))).toEqual([]);
});
