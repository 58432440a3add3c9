import { RatelimitNamespaceSpec } from "../../../core/manifests/ratelimit-namespace.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { competitorsOf } from "../claims.ts";
import { type Context, managerOf } from "../context.ts";
import { namespaceNameIn } from "../raw-spec.ts";
import { type ParsedSpec, parseSpec } from "../spec.ts";
import { findManaged, findOwnOrNamed, foundOr404 } from "../stored.ts";

export interface StoredNamespace {
  readonly namespaceId: string;
  readonly name: string;
  readonly manager: string | undefined;
  readonly lastManager?: string | undefined;
}

export interface ObservedNamespace {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<RatelimitNamespaceSpec>;
  readonly manager: string;
  /** Namespace that this object manages; otherwise the existing one with the desired name, if any. */
  readonly stored: StoredNamespace | undefined;
  /** All RatelimitNamespace objects that claim the same name, including this one. */
  readonly claimants: readonly ManifestObject[];
  readonly digest?: string | undefined;
}

export async function gatherNamespace(object: ManifestObject, ctx: Context): Promise<ObservedNamespace> {
  const parsed = parseSpec(RatelimitNamespaceSpec, object);
  const manager = managerOf(ctx, object);
  const { stored, digest } = await findOwnOrNamed(ctx.api, {
    kind: "namespace",
    manager,
    name: namespaceNameIn(object),
    find: (namespace) => findNamespace(namespace, ctx),
    isNamed: (namespace, name) => namespace.name === name,
  });
  return { object, parsed, manager, stored, digest, claimants: competitorsOf(object, ctx.source) };
}

export async function findNamespace(
  namespace: string,
  { api }: Pick<Context, "api">,
): Promise<StoredNamespace | undefined> {
  const found = foundOr404(await api.call("ratelimit.getNamespace", { namespace }));
  if (found === undefined) return undefined;
  const managed = await findManaged(api, "namespace", found.id);
  if (managed === undefined) return undefined;
  const { manager, lastManager } = managed;
  return { namespaceId: found.id, name: found.name, manager, lastManager };
}
