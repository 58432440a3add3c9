import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import type { NamespaceRecord } from "../../../core/records.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { findNamespaceEver, insertNamespace } from "../../db/namespaces.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import type { LimitDeps } from "../deps.ts";
import { auditEvent } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { knownValue } from "../refusals/refusals.ts";

/** Maximum number of attempts. An attempt fails if other calls create and delete the namespace in the meantime. */
const ATTEMPTS_MAX = 5;

/** Prefix of every namespace id. Names can start with it as well. */
const ID_START = "rlns_";

/** Permissions that are declared by every procedure that can charge a rate limit of a namespace. */
export interface LimitPermissions<Required extends RequiredPermission> {
  readonly limit: Required;
  readonly createNamespace: Required;
}

/**
 * Returns the live namespace of a limit call, by id or name, from the cache if possible. A missing namespace is created if the root key is
 * allowed to.
 * @throws PublicError 410 if the namespace was deleted and no other has its name; 403 if it does not exist and the root key is not allowed
 * to create it.
 */
export async function namespaceToLimit<Required extends RequiredPermission>(
  actor: Actor<Required, LimitDeps>,
  permissions: LimitPermissions<Required>,
  namespace: string,
): Promise<NamespaceRecord> {
  const known = await recallNamespace(actor, namespace);
  if (known === undefined) return ensureNamespace(actor, permissions, namespace);
  if (known.deleted) throw namespaceDeleted(namespace);
  return known;
}

/**
 * Returns the cached namespace. A live one takes precedence over a deleted one; otherwise, the id takes precedence over a name (api-v2.md
 * section 9.4).
 */
export async function recallNamespace(
  { caller, deps }: Actor<never, LimitDeps>,
  namespace: string,
): Promise<NamespaceRecord | undefined> {
  const { workspaceId } = caller;
  const byId = namespace.startsWith(ID_START)
    ? knownValue(await deps.projection.findNamespace(workspaceId, namespace))
    : undefined;
  if (byId?.deleted === false) return byId;
  const byName = knownValue(await deps.projection.findNamespaceByName(workspaceId, namespace));
  return byName?.deleted === false ? byName : (byId ?? byName);
}

/**
 * Returns the namespace from the database, or creates it. The database is read before a call is rejected, because another replica may have
 * just created the namespace.
 */
async function ensureNamespace<Required extends RequiredPermission>(
  actor: Actor<Required, LimitDeps>,
  permissions: LimitPermissions<Required>,
  name: string,
): Promise<NamespaceRecord> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const existing = await findNamespaceEver(deps.db, { workspaceId, namespace: name });
  if (existing === undefined) {
    actor.require(permissions.createNamespace);
    // Requires the permission for all namespaces, because no root key can hold one for an id that does not exist yet. The check comes
    // first, so that a rejected call creates no namespace.
    actor.require(permissions.limit);
  }
  const namespace = existing ?? (await makeNamespace(actor, name));
  // If another transaction created the namespace, this one has no outbox entry for it, so the negative cache entry of this process must be
  // dropped explicitly.
  deps.projection.drop([
    { workspaceId, kind: "namespaceName", id: name },
    { workspaceId, kind: "namespace", id: namespace.id },
  ]);
  if (namespace.deleted) throw namespaceDeleted(name);
  return namespace;
}

async function makeNamespace(actor: Actor<never, LimitDeps>, name: string): Promise<NamespaceRecord> {
  return inTransaction(actor.deps, async (tx) => {
    const { namespace, events } = await obtainNamespace(tx, actor, name);
    await insertAudit(tx, actor, events);
    return namespace;
  });
}

/**
 * Returns the namespace with this name, even if it is deleted. Creates a missing namespace, and then also returns the audit event.
 * Concurrent callers get the same namespace.
 */
export async function obtainNamespace(
  tx: Queryable,
  { caller, deps }: Actor<never, LimitDeps>,
  name: string,
): Promise<{ readonly namespace: NamespaceRecord; readonly events: readonly AuditEvent[] }> {
  const { workspaceId } = caller;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const id = makeId("namespace", deps.randomBytes(16));
    if (await insertNamespace(tx, { workspaceId, id, name, manager: null, createdAt: deps.nowMs() })) {
      return {
        namespace: { id, name, deleted: false },
        events: [auditEvent(MANAGED.namespace, { id, name }, "Created")],
      };
    }
    const winner = await findNamespaceEver(tx, { workspaceId, namespace: name });
    if (winner !== undefined) return { namespace: winner, events: [] };
  }
  throw new Error(`a namespace could not be made in ${ATTEMPTS_MAX} attempts`);
}

export const namespaceDeleted = (namespace: string): PublicError =>
  new PublicError("ratelimit_namespace_gone", `The rate-limit namespace ${namespace} was deleted.`);
