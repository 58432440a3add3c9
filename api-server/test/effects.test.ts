import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type TestApp } from "./app.ts";
import { sampleCallsOf } from "./sample-calls.ts";
import { makeThings } from "./things.ts";

/*
 * Every procedure does what it declares: one that reads leaves every object as it was, and one that changes writes down what it did.
 */

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

/** Audit rows and marks of one workspace. */
async function traces(workspaceId: string): Promise<{ audit: number; marks: number }> {
  const text = `select (select count(*) from audit_log a where a.workspace_id = $1) as audit,
                       (select count(*) from outbox o where o.workspace_id = $1) as marks`;
  const { rows } = await api.deps.db.query<{ audit: number; marks: number }>(text, [workspaceId]);
  return rows[0] ?? { audit: 0, marks: 0 };
}

/** Calls that make what they name when it is not there, and otherwise change nothing (api/v2 9.5). */
const MAKES_WHAT_IT_NAMES = "newNamespace";

describe.each(procedures.map(({ path, effect }) => ({ path, effect })))("$path ($effect)", ({ path, effect }) => {
  test.each(Object.entries(sampleCallsOf(path)))("%s", async (circumstance, makeCall) => {
    const { id: workspaceId, rootKey } = await api.makeWorkspace();
    const ask = (called: string, body: unknown) => api.data(called, body, { rootKey });
    const { body } = await makeCall(makeThings(api.deps.db, { workspaceId, ask }));
    const before = await traces(workspaceId);
    expect((await api.call(path, body, { rootKey })).status).toBe(200);
    const after = await traces(workspaceId);
    if (effect === "read" && circumstance !== MAKES_WHAT_IT_NAMES) expect(after).toEqual(before);
    else expect(after.audit).toBeGreaterThan(before.audit);
  });
});
