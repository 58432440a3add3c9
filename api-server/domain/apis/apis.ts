import { makeId } from "../../../core/ids.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import {
  type ApiRef,
  type ApiSettings,
  insertApi,
  lockApiSettings,
  updateApi as updateApiRow,
  updateApiSettings,
} from "../../db/apis.ts";
import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { settingsOf } from "../administration/apis.ts";
import { auditEvent, deleteManaged, lockManaged } from "../managed/changes.ts";
import { createOnce } from "../managed/create-once.ts";
import { MANAGED } from "../managed/resources.ts";
import { adopting, creatingManager, guardManaged } from "../managed/rules.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";

/** Creates an API with a new key space, and returns its id. If the manager already has an API, returns that API's id. */
export async function createApi(actor: Actor, name: string): Promise<string> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const manager = creatingManager(actor);
  return inTransaction(deps, async (tx) => {
    const apiId = makeId("api", deps.randomBytes(16));
    const keySpaceId = makeId("keySpace", deps.randomBytes(16));
    const api = { id: apiId, workspaceId, keySpaceId, name, manager, createdAt: deps.nowMs() };
    const creation = await createOnce(tx, actor, "api", () => insertApi(tx, api));
    if (creation.outcome === "own") return creation.id;
    if (creation.outcome === "taken") throw new Error("an API was neither made nor found");
    await insertAudit(tx, actor, [auditEvent(MANAGED.api, api, "Created")]);
    return apiId;
  });
}

/**
 * Changes the name, the settings or the manager of an API.
 * @throws PublicError 404, 403, 409 if another manager has the API.
 */
export async function updateApi<Required extends RequiredPermission>(
  actor: Actor<Required>,
  required: Required,
  {
    apiId,
    name: requested,
    settings: change = {},
  }: { readonly apiId: string; readonly name?: string | undefined; readonly settings?: ApiSettingsChange },
): Promise<void> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const api = await lockManaged(tx, MANAGED.api, { workspaceId, which: apiId });
    actor.require(required, apiId);
    const manager = guardManaged(actor, MANAGED.api, api);
    const name = requested ?? api.name;
    const updatedAt = deps.nowMs();
    const settings = await readSettings(tx, { workspaceId, apiId }, change);
    const changed = changeOf(
      { name: api.name, manager: api.manager, ...settings?.before },
      { name, manager, ...settings?.after },
    );
    if (changed.after === undefined) return;
    await adopting(actor, MANAGED.api, () => updateApiRow(tx, { workspaceId, apiId, name, manager, updatedAt }));
    if (settings !== undefined) {
      await updateApiSettings(tx, { workspaceId, apiId, settings: settings.after, updatedAt });
    }
    await insertAudit(tx, actor, [{ ...auditEvent(MANAGED.api, { id: apiId, name }, "Updated"), ...changed }]);
  });
}

/** Settings to change; `undefined` keeps the value. */
type ApiSettingsChange = { readonly [Name in keyof ApiSettings]?: ApiSettings[Name] | undefined };

/** Returns the settings of a locked API before and after the change; `undefined` if no setting is given. */
async function readSettings(
  tx: Queryable,
  ref: ApiRef,
  change: ApiSettingsChange,
): Promise<{ readonly before: ApiSettings; readonly after: ApiSettings } | undefined> {
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  const row = Object.keys(given).length === 0 ? undefined : await lockApiSettings(tx, ref);
  if (row === undefined) return undefined;
  const before = settingsOf(row);
  return { before, after: { ...before, ...given } };
}

/**
 * Marks an API as deleted; its keys are then no longer live. With `Postern-Release`, the API is kept and becomes unmanaged.
 * @throws PublicError 404, 409 `managed_by_manifest`, 412 `protected_resource`.
 */
export async function deleteApi(actor: Actor, apiId: string): Promise<void> {
  const { workspaceId } = actor.caller;
  await inTransaction(actor.deps, async (tx) => {
    const api = await lockManaged(tx, MANAGED.api, { workspaceId, which: apiId });
    await deleteManaged(tx, actor, MANAGED.api, api);
  });
}
