import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { Call, CallNeeding } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { type AuditChange, changeOf } from "../../store/audit-change.ts";
import { holdNamespace, type NamespaceRow } from "../../store/namespaces.ts";
import { insertOverride, lockOverride, type OverrideRow, updateOverride } from "../../store/overrides.ts";
import { inTransaction } from "../../store/transaction.ts";
import { auditEvent } from "../managed/changes.ts";
import { findCreated } from "../managed/create-once.ts";
import { adopting, creatingManager, guardManaged } from "../managed/rules.ts";
import { MANAGED } from "../managed/things.ts";
import { namespaceNotFound } from "../refusals/not-found.ts";

/** How often an override may be set and deleted by others while we read it before we give up. */
const ATTEMPTS_MAX = 5;

/** As in requests; the duration is in ms. */
export interface WantedOverride {
  /** Id or name; the id wins. */
  readonly namespace: string;
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly async: boolean;
}

interface Setting {
  readonly call: Call<unknown>;
  readonly namespace: NamespaceRow;
  readonly wanted: WantedOverride;
}

/**
 * Sets the override of an identifier: creates it, or changes it in place. Returns its id.
 * @param needed what the root key needs for the namespace.
 * @throws PublicError 404 for the namespace, 403, 409 when another manager has the override.
 */
export async function setOverride<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  needed: Needed,
  wanted: WantedOverride,
): Promise<string> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  return inTransaction(deps, async (tx) => {
    const namespace = await holdNamespace(tx, { workspaceId, namespace: wanted.namespace });
    if (namespace === undefined) throw namespaceNotFound(wanted.namespace);
    call.require(needed, namespace.id);
    const setting: Setting = { call, namespace, wanted };
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { identifier } = wanted;
      const existing = await lockOverride(tx, { workspaceId, namespaceId: namespace.id, identifier });
      const overrideId = existing === undefined ? await create(tx, setting) : await change(tx, setting, existing);
      if (overrideId !== undefined) return overrideId;
    }
    throw new Error(`an override could not be set in ${ATTEMPTS_MAX} attempts`);
  });
}

/** Returns undefined when another transaction has just created one for the identifier. */
async function create(tx: PoolClient, setting: Setting): Promise<string | undefined> {
  const { call, namespace, wanted } = setting;
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const manager = creatingManager(call);
  // A manager has one override. Creating is safe to repeat, so the response names the existing one.
  const own = await findCreated(tx, call, "override");
  if (own !== undefined) return own.id;
  const id = makeId("override", deps.randomBytes(16));
  const created = await insertOverride(tx, {
    id,
    workspaceId,
    namespaceId: namespace.id,
    identifier: wanted.identifier,
    limit: wanted.limit,
    durationMs: wanted.duration,
    async: wanted.async,
    manager,
    createdAt: deps.nowMs(),
  });
  if (!created) return undefined;
  await record(tx, setting, id, changeOf({}, fieldsOf(wanted, manager)));
  return id;
}

async function change(tx: PoolClient, setting: Setting, existing: OverrideRow): Promise<string> {
  const { call, wanted } = setting;
  const { caller, deps } = call;
  const { id } = existing;
  const manager = guardManaged(call, MANAGED.override, existing);
  const isSame =
    existing.max_count === wanted.limit &&
    existing.duration_ms === wanted.duration &&
    existing.async === wanted.async &&
    existing.manager === manager;
  if (isSame) return id;
  await adopting(call, MANAGED.override, () =>
    updateOverride(tx, {
      workspaceId: caller.workspaceId,
      id,
      limit: wanted.limit,
      durationMs: wanted.duration,
      async: wanted.async,
      manager,
      updatedAt: deps.nowMs(),
    }),
  );
  const { max_count: limit, duration_ms: duration, async } = existing;
  const before = fieldsOf({ limit, duration, async }, existing.manager);
  await record(tx, setting, id, changeOf(before, fieldsOf(wanted, manager)));
  return id;
}

const fieldsOf = (
  { limit, duration, async }: Pick<WantedOverride, "limit" | "duration" | "async">,
  manager: string | null,
) => ({ limit, duration, async, manager });

const record = (tx: PoolClient, { call, namespace, wanted }: Setting, id: string, change: AuditChange): Promise<void> =>
  insertAudit(tx, call, [
    {
      ...auditEvent(
        MANAGED.override,
        { id, identifier: wanted.identifier, namespace },
        "Updated",
        `Set override ${id} in rate-limit namespace ${namespace.id}`,
      ),
      ...change,
    },
  ]);
