import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import { insertAudit } from "../../db/audit.ts";
import { type AuditChange, changeOf } from "../../db/audit-change.ts";
import { type NamespaceRow, shareLockNamespace } from "../../db/namespaces.ts";
import { insertOverride, lockOverride, type OverrideRow, updateOverride } from "../../db/overrides.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent } from "../managed/changes.ts";
import { findCreated } from "../managed/create-once.ts";
import { MANAGED } from "../managed/resources.ts";
import { adopting, creatingManager, guardManaged } from "../managed/rules.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { namespaceNotFound } from "../refusals/refusals.ts";

/** Maximum number of attempts. An attempt fails if another call creates the override in the meantime. */
const ATTEMPTS_MAX = 5;

/** An override in a request; the duration is in ms. */
export interface RequestedOverride {
  /** Id or name of the namespace; the id takes precedence. */
  readonly namespace: string;
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly async: boolean;
}

interface Setting {
  readonly actor: Actor;
  readonly namespace: NamespaceRow;
  readonly wanted: RequestedOverride;
}

/**
 * Sets the override of an identifier: creates it, or updates it in place. Returns its id.
 * @param needed permission that the root key needs for the namespace.
 * @throws PublicError 404 for the namespace, 403, 409 if another manager has the override.
 */
export async function setOverride<Required extends RequiredPermission>(
  actor: Actor<Required>,
  required: Required,
  requested: RequestedOverride,
): Promise<string> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  return inTransaction(deps, async (tx) => {
    const namespace = await shareLockNamespace(tx, { workspaceId, namespace: requested.namespace });
    if (namespace === undefined) throw namespaceNotFound(requested.namespace);
    actor.require(required, namespace.id);
    const setting: Setting = { actor, namespace, wanted: requested };
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { identifier } = requested;
      const existing = await lockOverride(tx, { workspaceId, namespaceId: namespace.id, identifier });
      const overrideId = existing === undefined ? await create(tx, setting) : await change(tx, setting, existing);
      if (overrideId !== undefined) return overrideId;
    }
    throw new Error(`an override could not be set in ${ATTEMPTS_MAX} attempts`);
  });
}

/** Creates an override and returns its id; `undefined` if another transaction has just created one for the identifier. */
async function create(tx: PoolClient, setting: Setting): Promise<string | undefined> {
  const { actor, namespace, wanted: requested } = setting;
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const manager = creatingManager(actor);
  // A manager has at most one override. The id of the existing override is returned, so that a repeated call succeeds.
  const own = await findCreated(tx, actor, "override");
  if (own !== undefined) return own.id;
  const id = makeId("override", deps.randomBytes(16));
  const created = await insertOverride(tx, {
    id,
    workspaceId,
    namespaceId: namespace.id,
    identifier: requested.identifier,
    limit: requested.limit,
    durationMs: requested.duration,
    async: requested.async,
    manager,
    createdAt: deps.nowMs(),
  });
  if (!created) return undefined;
  await record(tx, setting, id, changeOf({}, fieldsOf(requested, manager)));
  return id;
}

async function change(tx: PoolClient, setting: Setting, existing: OverrideRow): Promise<string> {
  const { actor, wanted: requested } = setting;
  const { caller, deps } = actor;
  const { id } = existing;
  const manager = guardManaged(actor, MANAGED.override, existing);
  const isSame =
    existing.max_count === requested.limit &&
    existing.duration_ms === requested.duration &&
    existing.async === requested.async &&
    existing.manager === manager;
  if (isSame) return id;
  await adopting(actor, MANAGED.override, () =>
    updateOverride(tx, {
      workspaceId: caller.workspaceId,
      id,
      limit: requested.limit,
      durationMs: requested.duration,
      async: requested.async,
      manager,
      updatedAt: deps.nowMs(),
    }),
  );
  const { max_count: limit, duration_ms: duration, async } = existing;
  const before = fieldsOf({ limit, duration, async }, existing.manager);
  await record(tx, setting, id, changeOf(before, fieldsOf(requested, manager)));
  return id;
}

const fieldsOf = (
  { limit, duration, async }: Pick<RequestedOverride, "limit" | "duration" | "async">,
  manager: string | null,
) => ({ limit, duration, async, manager });

const record = (
  tx: PoolClient,
  { actor, namespace, wanted: requested }: Setting,
  id: string,
  change: AuditChange,
): Promise<void> =>
  insertAudit(tx, actor, [
    {
      ...auditEvent(
        MANAGED.override,
        { id, identifier: requested.identifier, namespace },
        "Updated",
        `Set override ${id} in rate-limit namespace ${namespace.id}`,
      ),
      ...change,
    },
  ]);
