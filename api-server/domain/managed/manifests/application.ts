import type { PoolClient } from "pg";
import type { Queryable } from "../../../../postgres/queryable.ts";
import type { ManagedKind } from "../../../db/managed-objects.ts";
import { findLastManager } from "../../../db/orphaned-objects.ts";
import type { Actor } from "../../actor.ts";
import type { CreditsDeps, LogDeps, VaultDeps } from "../../deps.ts";
import type { RequiredPermission } from "../../permissions/required-permissions.ts";
import type { Management } from "../rules.ts";
import type { Claimant, Owned } from "./claim.ts";
import type { Difference } from "./differences.ts";
import type { ToApply } from "./permissions.ts";

/** A manifest that is being applied. */
export interface Application<Spec> extends Claimant {
  readonly spec: Spec;
  /** Managers in other Kubernetes namespaces. They allow the manifest to refer to their objects. */
  readonly mayReferTo: readonly string[];
  /** Uid of the Kubernetes object; `undefined` if the manifest does not come from a cluster. */
  readonly uid: string | undefined;
  /** Generation of the Kubernetes object. If `undefined`, generations count the changes of the stored policy instead. */
  readonly generation: number | undefined;
}

/** Result of planning a manifest: the steps to perform, in order, and the differences that they remove. */
export interface Planned<Step> {
  readonly steps: readonly Step[];
  readonly changes: readonly Difference[];
}

/** Ids of stored objects. The members have the same names as in the manifest's status. */
export interface StoredIds {
  readonly roleId?: string;
  readonly namespaceId?: string;
  readonly overrideId?: string;
  readonly apiId?: string;
  readonly policyId?: string;
  readonly keyId?: string;
}

export interface Applied {
  readonly outcome: "created" | "updated" | "unchanged";
  readonly ids: StoredIds;
  readonly changes: readonly Difference[];
  /** Warnings about parts of the manifest that its author probably did not intend. */
  readonly warnings?: readonly { readonly path: string; readonly message: string }[];
}

/** An open transaction and the actor for use cases that run in it. */
export interface Transaction<Required extends RequiredPermission = ToApply> {
  readonly tx: PoolClient;
  readonly actor: Actor<Required, ManifestDeps>;
}

/** Dependencies of the use cases that manifests need. */
export type ManifestDeps = CreditsDeps & VaultDeps & LogDeps;

/** Returns the actor with the management headers that one step requires. */
export const managing = <Required extends RequiredPermission>(
  actor: Actor<Required, ManifestDeps>,
  more: Partial<Management>,
): Actor<Required, ManifestDeps> => ({
  ...actor,
  management: { ...actor.management, ...more },
});

/** Adds the former manager to an object that no longer has a manager. */
export async function withLastManager<Row extends Pick<Owned, "id" | "manager">>(
  tx: Queryable,
  { workspaceId, kind }: { readonly workspaceId: string; readonly kind: ManagedKind },
  row: Row,
): Promise<Row & Owned> {
  const { id, manager } = row;
  const lastManager = manager === null ? await findLastManager(tx, { workspaceId, kind, id }) : undefined;
  return { ...row, lastManager };
}
