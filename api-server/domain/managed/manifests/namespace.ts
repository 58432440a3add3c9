import type { RatelimitNamespaceSpec } from "../../../../core/manifests/ratelimit-namespace.ts";
import { findOwn } from "../../../db/managed-objects.ts";
import { lockNamespace, lockNamespaceByName } from "../../../db/namespaces.ts";
import { createNamespace } from "../../ratelimits/create-namespace.ts";
import {
  type Application,
  type Applied,
  managing,
  type Planned,
  type Transaction,
  withLastManager,
} from "./application.ts";
import { type Owned, refuse, requireClaim, requireManaged } from "./claim.ts";
import { differencesBetween } from "./differences.ts";
import { TO_APPLY } from "./permissions.ts";

export interface StoredNamespace extends Owned {
  readonly name: string;
}

/**
 * Plans how a manifest changes the stored rate-limit namespace, which is the one that it manages or, if there is none, the one with its
 * name. Pure.
 * @throws PublicError 400 if the manifest would rename it, 409 if the manifest is not allowed to manage it.
 */
export function planNamespace(
  desired: Application<RatelimitNamespaceSpec>,
  stored: StoredNamespace | undefined,
): Planned<"create" | "adopt"> {
  const { name } = desired.spec;
  if (stored === undefined) {
    requireManaged(desired, "name");
    return { steps: ["create"], changes: differencesBetween(undefined, { name }) };
  }
  if (stored.name !== name) {
    const message = `a rate-limit namespace cannot be renamed; the stored name is ${stored.name}. Restore the name, or create another object.`;
    throw refuse("invalid_input", "name", message);
  }
  requireClaim(desired, stored, {
    label: `The rate-limit namespace ${name}`,
    field: "name",
    otherwise: "or choose another spec.name",
    isEqual: true,
  });
  return { steps: stored.manager === null ? ["adopt"] : [], changes: [] };
}

export async function applyNamespace(
  transaction: Transaction,
  desired: Application<RatelimitNamespaceSpec>,
): Promise<Applied> {
  const { actor } = transaction;
  const stored = await readNamespace(transaction, desired);
  actor.require(TO_APPLY.readNamespace, stored?.id);
  const { steps, changes } = planNamespace(desired, stored);
  if (steps.length === 0) return { outcome: "unchanged", ids: { namespaceId: stored?.id ?? "" }, changes };
  actor.require(TO_APPLY.createNamespace);
  const namespaceId = await createNamespace(managing(actor, { adopt: steps[0] === "adopt" }), desired.spec.name);
  return { outcome: stored === undefined ? "created" : "updated", ids: { namespaceId }, changes };
}

/** Locks and returns the namespace that the manifest manages or, if there is none, the live namespace with the desired name. */
async function readNamespace(
  { tx, actor }: Transaction,
  { manager, spec }: Pick<Application<RatelimitNamespaceSpec>, "manager" | "spec">,
): Promise<StoredNamespace | undefined> {
  const { workspaceId } = actor.caller;
  const own = await findOwn(tx, "namespace", { workspaceId, manager });
  const row =
    own === undefined
      ? await lockNamespaceByName(tx, { workspaceId, name: spec.name })
      : await lockNamespace(tx, { workspaceId, namespace: own.id });
  return row && (await withLastManager(tx, { workspaceId, kind: "namespace" }, row));
}
