import type { Queryable } from "../../../postgres/queryable.ts";
import type { AuditEvent } from "../../db/audit.ts";
import type { ManagedKind } from "../../db/managed-objects.ts";
import { listOwned, type OwnedBy, type OwnedRow, updateManager } from "../../db/managed-owners.ts";
import { deleteOrphan, upsertOrphan } from "../../db/orphaned-objects.ts";
import { inTransaction } from "../../db/transaction.ts";
import { MANAGED } from "../managed/resources.ts";
import { asItsOnly } from "../managed/rules.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/*
 * Lets administrators change the manager of objects. Usually, the operator sets the manager when it applies a manifest. These functions are
 * for objects that a manifest has orphaned, and for manifests that move to another cluster, namespace or name.
 */

/**
 * Releases objects that a manager owns or has orphaned, so that any manifest of the workspace is allowed to adopt them. Returns the
 * released objects.
 * @param manager name of a manager, or a prefix that several names share, such as `main/ApiKeyPolicy/shop`.
 */
export async function releaseManaged(administrator: Administrator, by: OwnedBy): Promise<readonly OwnedRow[]> {
  return inTransaction(administrator, async (tx) => {
    const owned = await listOwned(tx, { ...by, rowsMax: null });
    for (const row of owned) await handOver(tx, by.workspaceId, row, null);
    await audit(tx, administrator, by.workspaceId, owned, (row) => `Released ${describe(row)}`);
    return owned;
  });
}

/**
 * Transfers to another manager the objects that a manager owns or has orphaned. Policies are excluded, because each cluster stores its own.
 * @throws PublicError 409 `managed_exists` if the other manager already has such an object.
 */
export async function transferManaged(
  administrator: Administrator,
  { workspaceId, from, to }: { workspaceId: string; from: string; to: string },
): Promise<readonly OwnedRow[]> {
  const renamed = (manager: string): string => `${to}${manager.slice(from.length)}`;
  return inTransaction(administrator, async (tx) => {
    const owned = await listOwned(tx, { workspaceId, manager: from, rowsMax: null });
    const moved = owned.filter(({ kind }) => kind !== "policy");
    for (const row of moved) await handOver(tx, workspaceId, row, renamed(row.manager ?? row.last_manager ?? ""));
    await audit(tx, administrator, workspaceId, moved, (row) => `Transferred ${describe(row)} to ${to}`);
    return moved;
  });
}

async function handOver(tx: Queryable, workspaceId: string, row: OwnedRow, to: string | null): Promise<void> {
  const { kind, id, manager, last_manager: lastManager, released_at: releasedAt } = row;
  if (manager === null) {
    const ref = { workspaceId, kind, id };
    if (to === null || lastManager === null || releasedAt === null) await deleteOrphan(tx, ref);
    else await upsertOrphan(tx, { ...ref, lastManager: to, releasedAt });
    return;
  }
  await asItsOnly(to, MANAGED[kind], () => updateManager(tx, kind, { workspaceId, id, from: manager, to }));
}

const TARGET_TYPE = {
  api: "api",
  role: "role",
  permission: "permission",
  namespace: "ratelimitNamespace",
  override: "ratelimitOverride",
  key: "key",
  policy: "policy",
} as const satisfies Record<ManagedKind, AuditEvent["targets"][number]["type"]>;

const describe = ({ kind, id, manager, last_manager }: OwnedRow): string =>
  `${MANAGED[kind].noun} ${id} of ${manager ?? last_manager}`;

async function audit(
  tx: Queryable,
  administrator: Administrator,
  workspaceId: string,
  rows: readonly OwnedRow[],
  description: (row: OwnedRow) => string,
): Promise<void> {
  const events = rows.map(
    (row): AuditEvent => ({
      event: MANAGED[row.kind].events.changed,
      description: description(row),
      targets: [{ type: TARGET_TYPE[row.kind], id: row.id, ...(row.name === null ? {} : { name: row.name }) }],
    }),
  );
  await insertAdministration(tx, administrator, workspaceId, events);
}
