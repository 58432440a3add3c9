import type { Logger } from "pino";
import type { Kind } from "../../core/manifests/index.ts";
import { formatManager, parseManager } from "../../core/manifests/manager.ts";
import type { ApiClient } from "../api/client.ts";
import type { OwnNetworkPolicies } from "../network/own-network-policies.ts";
import type { Services } from "../network/service.ts";
import type { Pods } from "../pods/pod.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { Workspaces } from "../tenancy/workspaces.ts";
import type { PolicyCache } from "./api-key-policy/policy-cache.ts";
import type { SyncedObjects } from "./drift/synced-objects.ts";
import type { ObjectSource } from "./indexes.ts";
import type { SyncTimes } from "./sync-times.ts";

/**
 * Dependencies that all reconciles of an operator share. They contain no API client, because each object needs the client of its own
 * workspace.
 */
export interface OperatorContext {
  readonly source: ObjectSource;
  readonly workspaces: Pick<Workspaces, "resolve" | "mayUseName" | "confirm">;
  /** Name of this cluster or directory, unique within the database. */
  readonly cluster: string;
  /** Cached policies, for reconciles between two full reads. */
  readonly policyCache: PolicyCache;
  /** Cached objects of the other kinds, as long as they match their manifests. */
  readonly synced: SyncedObjects;
  readonly syncs: SyncTimes;
  /** Pods of the cluster; `undefined` for a directory, which has no pods. */
  readonly pods: Pick<Pods, "in"> | undefined;
  /** Returns whether the label of a Namespace requires a gate for all its pods; `undefined` if unknown. */
  readonly isNamespaceGuarded?: ((namespace: string) => boolean | undefined) | undefined;
  /** NetworkPolicies of the cluster. `undefined` if the manifests come from a directory instead of a cluster. */
  readonly network: OwnNetworkPolicies | undefined;
  /** Services of the cluster; `undefined` for a directory. */
  readonly services?: Pick<Services, "in"> | undefined;
  /** Current term of leadership. */
  readonly term: () => Term;
  /** Called if the API has already received calls with a higher fencing number than that of the current term. */
  readonly onStaleFence: () => void;
  readonly resyncMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Thrown when another replica has become the leader, so this one must no longer write. */
export class LeadershipLost extends Error {
  override readonly name = "LeadershipLost";
}

/** Period during which this replica leads. */
export interface Term {
  /** Fencing number that the API calls contain; `undefined` without an election. */
  readonly fence: number | undefined;
  /** Aborts when the leadership is lost. */
  readonly signal: AbortSignal;
}

/**
 * Dependencies of one reconcile, restricted to the workspace of its object. `source` cannot list all objects, so that the cost of a
 * reconcile does not grow with the number of other objects.
 */
export interface Context extends Omit<OperatorContext, "workspaces" | "source" | "term">, Term {
  readonly source: Pick<ObjectSource, "get" | "having" | "secrets" | "recordEvent">;
  readonly api: ApiClient;
}

/** Returns the manager name of the object, as sent to the API. */
export const managerOf = ({ cluster }: Pick<Context, "cluster">, { kind, metadata }: ManifestObject): string =>
  formatManager({ cluster, kind, namespace: metadata.namespace, name: metadata.name });

/**
 * Returns the object of this source that has the manager name; `undefined` if the name belongs to another cluster or kind, or the object
 * was deleted.
 */
export function managedBy(
  { cluster, source }: Pick<Context, "cluster" | "source">,
  kind: Kind,
  manager: string,
): ManifestObject | undefined {
  const parsed = parseManager(manager);
  return parsed?.cluster === cluster && parsed.kind === kind ? source.get(kind, parsed) : undefined;
}
