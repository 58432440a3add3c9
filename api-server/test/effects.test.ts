import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import { MANAGED } from "../domain/managed/resources.ts";
import { buildTestApp, type TestApp } from "./app.ts";
import { everyProcedure, isSuccess, sampleCallsOf } from "./every-procedure.ts";
import { makeResources } from "./resources.ts";

/* Every procedure has its declared effect: a reading one changes no object, and a changing one writes audit entries. */

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

/** Counts the audit entries of all workspaces, because a new workspace has its own, and the outbox entries of one workspace. */
async function traces(workspaceId: string): Promise<{ audit: number; marks: number }> {
  const text = `select (select count(*) from audit_log a where a.event <> 'api.v1_used') as audit,
                       (select count(*) from outbox o where o.workspace_id = $1) as marks`;
  const { rows } = await api.deps.db.query<{ audit: number; marks: number }>(text, [workspaceId]);
  return rows[0] ?? { audit: 0, marks: 0 };
}

/** Calls that create the named object if it is missing and otherwise change nothing (api-v2.md section 9.4). */
const MAKES_WHAT_IT_NAMES = "newNamespace";

describe.each(everyProcedure)("$path ($effect)", ({ path, effect }) => {
  test.each(Object.entries(sampleCallsOf(path)))(
    "procedure that is called %s has exactly its declared effect",
    async (circumstance, makeCall) => {
      const { id: workspaceId, rootKey } = await api.makeWorkspace(ALL_GRANTS);
      const ask = (called: string, body: unknown) => api.data(called, body, { rootKey });
      const { body } = await makeCall(makeResources(api.deps.db, { workspaceId, ask }));
      const before = await traces(workspaceId);
      expect(isSuccess(await api.call(path, body, { rootKey }))).toBe(true);
      const after = await traces(workspaceId);
      const isRead = (effect === "read" && circumstance !== MAKES_WHAT_IT_NAMES) || circumstance === "dryRun";
      if (isRead) expect(after).toEqual(before);
      else expect(after.audit).toBeGreaterThan(before.audit);
    },
  );
});

const MANAGED_TABLES = Object.values(MANAGED).map(({ index }) => index.replace(/_manager$/, ""));

/**
 * Procedures that ignore the manager of an object (api-v2.md section 24.1), with the reason. A new procedure must respect the manager or be
 * listed here.
 */
const MIND_NO_MANAGER: Readonly<
  Record<string, "makes something new" | "never managed" | "not guarded" | "passes over them">
> = {
  "apis.createApi": "makes something new",
  "keys.createKey": "makes something new",
  "keys.migrateKeys": "makes something new",
  "identities.createIdentity": "makes something new",
  "permissions.createPermission": "makes something new",
  "permissions.createRole": "makes something new",
  "ratelimit.createNamespace": "makes something new",
  // managed.test.ts tests that it respects the manager of existing objects.
  "ratelimit.setOverride": "makes something new",
  "managed.applyObject": "makes something new",
  // applyObject.test.ts tests that it deletes only what its own manager has.
  "managed.deleteObject": "not guarded",
  "identities.updateIdentity": "never managed",
  "identities.deleteIdentity": "never managed",
  "keys.updateCredits": "not guarded",
  "keys.rerollKey": "not guarded",
  "admin.createRootKey": "makes something new",
  "admin.createWorkspace": "makes something new",
  "admin.updateWorkspace": "never managed",
  "admin.updateSettings": "never managed",
  "admin.updateQueryLimits": "never managed",
  "admin.disableKeysOfOwner": "passes over them",
  "admin.startImport": "makes something new",
  "admin.updateRootKey": "never managed",
  "admin.rotateRootKey": "never managed",
  "admin.deleteRootKey": "never managed",
  "admin.deleteSession": "never managed",
  "admin.createSignInLink": "makes something new",
  "admin.deleteSignInLink": "never managed",

  "v1/apis.createApi": "makes something new",
  "v1/keys": "makes something new",
  "v1/keys.createKey": "makes something new",
  "v1/migrations.createKeys": "makes something new",
  "v1/migrations.enqueueKeys": "makes something new",
  "v1/keys.updateRemaining": "not guarded",
  "v1/identities.createIdentity": "makes something new",
  "v1/permissions.createPermission": "makes something new",
  "v1/permissions.createRole": "makes something new",
  // v1 counterparts of the procedures above.
  "v1/ratelimits.setOverride": "makes something new",
  "v1/identities.updateIdentity": "never managed",
  "v1/identities.deleteIdentity": "never managed",
};

describe.each(everyProcedure.filter(({ effect }) => effect === "change").map(({ path }) => path))("%s", (path) => {
  const why = MIND_NO_MANAGER[path];

  test(
    why === undefined
      ? "procedure rejects changes of an object of another manager"
      : `procedure ignores managers: ${why}`,
    async () => {
      const { id: workspaceId, rootKey } = await api.makeWorkspace(ALL_GRANTS);
      const ask = (called: string, body: unknown) => api.data(called, body, { rootKey });
      const { body } = await sampleCallsOf(path).always(makeResources(api.deps.db, { workspaceId, ask }));
      for (const table of MANAGED_TABLES) {
        await api.deps.db.query(`update ${table} set manager = 'main/Kind/shop/' || id where workspace_id = $1`, [
          workspaceId,
        ]);
      }
      const reply = await api.call(path, body, { rootKey });
      if (why !== undefined) {
        expect(isSuccess(reply), JSON.stringify(reply.body)).toBe(true);
        return;
      }
      expect(reply.status).toBe(409);
      expect(reply.body.error.detail ?? reply.body.error.message).toMatch(/is managed by main\/Kind\/shop\//);
    },
  );
});
