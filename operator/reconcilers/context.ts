import type { Logger } from "pino";
import type { Kind } from "../../core/manifests/index.ts";
import type { Management, StoreApi } from "../api/client.ts";
import type { ManifestObject, ManifestSource } from "../source/contract.ts";

/** The dependencies of a reconciler. */
export interface Context {
  readonly source: ManifestSource;
  readonly api: StoreApi;
  /** The unique name of this cluster (or directory) among those that share the store. */
  readonly cluster: string;
  readonly resyncMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
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
