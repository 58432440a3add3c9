import type { Logger } from "pino";
import type { Kind } from "../../core/manifests/index.ts";
import type { Management, StoreApi } from "../api/client.ts";
import type { NetworkPolicies } from "../network/follow-network-policies.ts";
import type { Services } from "../network/follow-services.ts";
import type { Pods } from "../pods/follow-pods.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { Workspaces } from "../tenancy/workspaces.ts";
import type { PolicyLooks } from "./api-key-policy/looks.ts";
import type { ObjectSource } from "./indexes.ts";
import type { SettledObjects } from "./settled/settled.ts";
import type { SyncTimes } from "./sync-times.ts";

/** What all reconciles of an operator share. It has no API: which workspace an object acts in depends on its namespace. */
export interface OperatorContext {
  readonly source: ObjectSource;
  readonly workspaces: Pick<Workspaces, "placeOf" | "mayUseName" | "confirm">;
  /** The unique name of this cluster (or directory) among those that share the store. */
  readonly cluster: string;
  /** What is remembered of the policies between two whole looks at them. */
  readonly looks: PolicyLooks;
  /** What is remembered of the other kinds: objects that the store has as their manifests say. */
  readonly settled: SettledObjects;
  readonly syncs: SyncTimes;
  /** undefined where there are none, as in a directory. */
  readonly pods: Pick<Pods, "in"> | undefined;
  /** Whether all pods of a namespace are admitted with a gate or not at all, by its label; undefined when that is not known. */
  readonly isNamespaceGuarded?: ((namespace: string) => boolean | undefined) | undefined;
  /** undefined where there are none, as in a directory. */
  readonly network: Pick<NetworkPolicies, "in" | "apply" | "lastWritten" | "orphan" | "remove"> | undefined;
  /** undefined where there are none, as in a directory. */
  readonly services?: Pick<Services, "in"> | undefined;
  readonly resyncMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * The dependencies of one reconcile, in the workspace of its object: `source` has no object of another one. It has no list either,
 * because what is done for one object must not cost more the more others there are.
 */
export interface Context extends Omit<OperatorContext, "workspaces" | "source"> {
  readonly source: Pick<ObjectSource, "get" | "having" | "secrets" | "recordEvent">;
  readonly api: StoreApi;
}

/** The manager name of the object in the store, as sent to the API. */
export const managerOf = ({ cluster }: Pick<Context, "cluster">, { kind, metadata }: ManifestObject): string =>
  `${cluster}/${kind}/${metadata.namespace}/${metadata.name}`;

/** Returns the object of this source for a manager name; undefined when it is of another cluster or kind, or gone. */
export function managedBy(
  { cluster, source }: Pick<Context, "cluster" | "source">,
  kind: Kind,
  manager: string,
): ManifestObject | undefined {
  const [of, managerKind, namespace = "", name = ""] = manager.split("/");
  return of === cluster && managerKind === kind ? source.get(kind, { namespace, name }) : undefined;
}

export const managementOf = (
  ctx: Context,
  object: ManifestObject,
  extra: Omit<Management, "manager"> = {},
): Management => ({
  manager: managerOf(ctx, object),
  ...extra,
});
