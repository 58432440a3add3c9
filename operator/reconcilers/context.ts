import type { Logger } from "pino";
import type { Kind } from "../../core/manifests/index.ts";
import type { Management, StoreApi } from "../api/client.ts";
import type { ManifestObject, ManifestSource } from "../source/contract.ts";

/** A workspace of the store. */
export interface Workspace {
  /** Calls with a root key of the workspace. */
  readonly api: StoreApi;
}

/** What all reconciles of an operator share. It has no API: which workspace an object acts in depends on its namespace. */
export interface OperatorContext {
  readonly source: ManifestSource;
  /** The workspace in which the objects of a Kubernetes namespace act. */
  readonly workspaceOf: (namespace: string) => Workspace;
  /** The unique name of this cluster (or directory) among those that share the store. */
  readonly cluster: string;
  readonly resyncMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The dependencies of one reconcile: those of the operator, in the workspace of the object. */
export interface Context extends Omit<OperatorContext, "workspaceOf">, Workspace {}

/** Everything that is gathered and applied for an object is asked of this context, and so of its workspace alone. */
export function contextFor(
  { workspaceOf, ...shared }: OperatorContext,
  { metadata: { namespace } }: ManifestObject,
): Context {
  return { ...shared, ...workspaceOf(namespace) };
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
