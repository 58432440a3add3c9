import type { NamespaceRecord } from "../../../core/records.ts";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { listNamespacesEver } from "../../db/namespaces.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import type { LimitDeps } from "../deps.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { type LimitPermissions, namespaceDeleted, obtainNamespace, recallNamespace } from "./namespaces.ts";

/**
 * Returns the live namespaces of a call for several limits, by the names in the call, from the cache if possible. Missing namespaces are
 * created together, and only if the rest of the call is valid.
 * @throws PublicError 403 if the root key is not allowed to create or use a namespace; otherwise 410 if a namespace was deleted and no
 * other has its name.
 */
export async function namespacesToLimit<Required extends RequiredPermission>(
  actor: Actor<Required, LimitDeps>,
  permissions: LimitPermissions<Required>,
  named: readonly string[],
): Promise<ReadonlyMap<string, NamespaceRecord>> {
  const names = [...new Set(named)];
  const known = await findNamespaces(actor, names);
  const missing = names.filter((name) => !known.has(name));
  if (missing.length > 0) {
    actor.require(permissions.createNamespace);
    // Requires the permission for all namespaces, because a root key cannot hold the permission for a namespace that has no id yet.
    actor.require(permissions.limit);
  }
  for (const { id } of known.values()) actor.require(permissions.limit, id);
  for (const [name, { deleted }] of known) if (deleted) throw namespaceDeleted(name);
  if (missing.length === 0) return known;
  return new Map([...known, ...(await makeNamespaces(actor, missing))]);
}

/**
 * Finds namespaces by name. Names that are not in the cache are looked up in the database, because another replica may have just created
 * the namespace.
 */
async function findNamespaces(
  actor: Actor<never, LimitDeps>,
  names: readonly string[],
): Promise<Map<string, NamespaceRecord>> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const found = new Map<string, NamespaceRecord>();
  const recalled = await Promise.all(names.map((name) => recallNamespace(actor, name)));
  const unknown: string[] = [];
  for (const [i, name] of names.entries()) {
    const namespace = recalled[i];
    if (namespace === undefined) unknown.push(name);
    else found.set(name, namespace);
  }
  if (unknown.length === 0) return found;
  for (const { asked, id, name, deleted } of await listNamespacesEver(deps.db, { workspaceId, namespaces: unknown })) {
    found.set(asked, { id, name, deleted });
    deps.projection.drop([
      { workspaceId, kind: "namespaceName", id: asked },
      { workspaceId, kind: "namespace", id },
    ]);
  }
  return found;
}

/** Creates namespaces atomically, in a fixed order, so that two calls that create the same ones do not deadlock. */
async function makeNamespaces(
  actor: Actor<never, LimitDeps>,
  names: readonly string[],
): Promise<ReadonlyMap<string, NamespaceRecord>> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const made = await inTransaction(deps, async (tx) => {
    const namespaces = new Map<string, NamespaceRecord>();
    const allEvents: AuditEvent[] = [];
    for (const name of names.toSorted()) {
      const { namespace, events } = await obtainNamespace(tx, actor, name);
      // Rolls this transaction back, because another one created and deleted the namespace in the meantime.
      if (namespace.deleted) throw namespaceDeleted(name);
      namespaces.set(name, namespace);
      allEvents.push(...events);
    }
    await insertAudit(tx, actor, allEvents);
    return namespaces;
  });
  // If another transaction created a namespace, this one has no outbox entry for it, so the negative cache entry of this process must be
  // dropped explicitly.
  deps.projection.drop(names.map((id) => ({ workspaceId, kind: "namespaceName", id })));
  return made;
}
