import type { Logger } from "pino";
import type { Kind } from "../../core/manifests/index.ts";
import type { Management, StoreApi } from "../api/client.ts";
import type { ManifestObject, ManifestSource } from "../source/contract.ts";

/** Everything a reconciler may reach for. */
export interface Context {
  readonly source: ManifestSource;
  readonly api: StoreApi;
  /** The name of this cluster (or directory) among those that share the store. */
  readonly cluster: string;
  readonly resyncMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Who manages the object's counterpart in the store, as the API is told. */
export const managerOf = ({ cluster }: Pick<Context, "cluster">, { kind, metadata }: ManifestObject): string =>
  `${cluster}/${kind}/${metadata.namespace}/${metadata.name}`;

/** The object of this source that the store calls a manager; undefined when it is of another cluster or kind, or gone. */
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
