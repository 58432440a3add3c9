import { parseDuration } from "../../../../core/manifests/duration.ts";
import { formatManager, requireManager } from "../../../../core/manifests/manager.ts";
import type { RatelimitOverrideSpec } from "../../../../core/manifests/ratelimit-override.ts";
import { findOwn } from "../../../db/managed-objects.ts";
import { type NamespaceRow, shareLockNamespace } from "../../../db/namespaces.ts";
import { lockOverride, lockOverrideOfManager, type OverrideRow } from "../../../db/overrides.ts";
import { deleteOverride } from "../../ratelimits/delete-override.ts";
import { setOverride } from "../../ratelimits/set-override.ts";
import {
  type Application,
  type Applied,
  managing,
  type Planned,
  type Transaction,
  withLastManager,
} from "./application.ts";
import { type Owned, refuse, requireClaim, requireManaged, requireReference } from "./claim.ts";
import { differencesBetween } from "./differences.ts";
import { TO_APPLY } from "./permissions.ts";

export interface StoredOverride extends Owned {
  readonly namespaceId: string;
  readonly identifier: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly async: boolean;
}

export interface StoredOverrides {
  readonly namespaceId: string;
  /** Override of the namespace with exactly this identifier. */
  readonly named: StoredOverride | undefined;
  /** Override that the manifest manages. It differs from `named` if the manifest's identifier or namespace has changed. */
  readonly own: StoredOverride | undefined;
}

/**
 * Plans how a manifest changes the stored override. Pure.
 * @throws PublicError 409 if the manifest is not allowed to manage the override.
 */
export function planOverride(
  desired: Application<RatelimitOverrideSpec>,
  { namespaceId, named, own }: StoredOverrides,
): Planned<"deleteFormer" | "set"> {
  const { identifier, limit, duration, async } = desired.spec;
  const members = { namespaceId, identifier, limit, durationMs: parseDuration(duration), async };
  const changes = differencesBetween(membersOf(own ?? named), members);
  if (named !== undefined) {
    requireClaim(desired, named, {
      label: `The override for ${identifier} (${named.id})`,
      field: "identifier",
      otherwise: "or delete one of the two",
      isEqual: changes.length === 0,
    });
  }
  if (named === undefined && own === undefined) requireManaged(desired, "identifier");
  const isMoved = own !== undefined && own.id !== named?.id;
  const isSet = named?.manager === desired.manager && changes.length === 0;
  return {
    steps: [...(isMoved ? (["deleteFormer"] as const) : []), ...(isSet ? [] : (["set"] as const))],
    changes,
  };
}

const membersOf = (stored: StoredOverride | undefined) => {
  if (stored === undefined) return undefined;
  const { namespaceId, identifier, limit, durationMs, async } = stored;
  return { namespaceId, identifier, limit, durationMs, async };
};

export async function applyOverride(
  transaction: Transaction,
  desired: Application<RatelimitOverrideSpec>,
): Promise<Applied> {
  const { actor } = transaction;
  const { identifier, limit, duration, async } = desired.spec;
  const { id: namespaceId } = await resolveNamespace(transaction, desired);
  actor.require(TO_APPLY.readOverride, namespaceId);
  const stored = await readOverrides(transaction, desired, namespaceId);
  const { steps, changes } = planOverride(desired, stored);
  let overrideId = stored.named?.id ?? "";
  for (const step of steps) {
    if (step === "set") {
      const override = { namespace: namespaceId, identifier, limit, duration: parseDuration(duration), async };
      overrideId = await setOverride(
        managing(actor, { adopt: stored.named?.manager === null }),
        TO_APPLY.setOverride,
        override,
      );
    } else if (stored.own !== undefined) {
      const former = { namespace: stored.own.namespaceId, identifier: stored.own.identifier };
      await deleteOverride(actor, TO_APPLY.deleteOverride, former);
    }
  }
  const isNew = stored.named === undefined && stored.own === undefined;
  const outcome = steps.length === 0 ? "unchanged" : isNew ? "created" : "updated";
  return { outcome, ids: { overrideId, namespaceId }, changes };
}

/** Returns the rate-limit namespace that is managed by the object to which `spec.namespaceRef` refers. */
async function resolveNamespace(
  { tx, actor }: Transaction,
  desired: Application<RatelimitOverrideSpec>,
): Promise<Pick<NamespaceRow, "id">> {
  const { workspaceId } = actor.caller;
  const self = requireManager(desired.manager);
  const { name, namespace = self.namespace } = desired.spec.namespaceRef;
  const manager = formatManager({ cluster: self.cluster, kind: "RatelimitNamespace", namespace, name });
  const label = `The RatelimitNamespace ${namespace}/${name}`;
  const found = await findOwn(tx, "namespace", { workspaceId, manager });
  if (found === undefined) {
    const message = `${label} does not exist or is not stored yet. Create it, or correct spec.namespaceRef.`;
    throw refuse("ratelimit_namespace_not_found", "namespaceRef", message);
  }
  requireReference(desired, { manager, lastManager: undefined }, { label, field: "namespaceRef" });
  return found;
}

async function readOverrides(
  { tx, actor }: Transaction,
  { manager, spec }: Application<RatelimitOverrideSpec>,
  namespaceId: string,
): Promise<StoredOverrides> {
  const { workspaceId } = actor.caller;
  await shareLockNamespace(tx, { workspaceId, namespace: namespaceId });
  const toStored = async (row: OverrideRow, inNamespace: string): Promise<StoredOverride> => {
    const { max_count: limit, duration_ms: durationMs } = row;
    const override = await withLastManager(tx, { workspaceId, kind: "override" }, row);
    return { ...override, namespaceId: inNamespace, limit, durationMs };
  };
  const row = await lockOverride(tx, { workspaceId, namespaceId, identifier: spec.identifier });
  const named = row && (await toStored(row, namespaceId));
  if (named?.manager === manager) return { namespaceId, named, own: named };
  const own = await lockOverrideOfManager(tx, { workspaceId, manager });
  return { namespaceId, named, own: own && (await toStored(own, own.namespace_id)) };
}
