import { RatelimitOverrideSpec } from "../../../core/manifests/ratelimit-override.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { competitorsOf } from "../claims.ts";
import { type Context, managerOf } from "../context.ts";
import { mayReferTo, resolveNamespace } from "../namespace-ref.ts";
import { progressing, type ResolvedNamespace } from "../plan.ts";
import { identifierIn, namespaceRefOf } from "../raw-spec.ts";
import { type ParsedSpec, parseSpec } from "../spec.ts";
import { findManaged, findOwned, foundOr404, type Owned } from "../stored.ts";

export interface StoredOverride {
  readonly overrideId: string;
  readonly namespaceId: string;
  readonly identifier: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly async: boolean;
  readonly manager: string | undefined;
  readonly lastManager?: string | undefined;
}

export interface ObservedOverride {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<RatelimitOverrideSpec>;
  readonly manager: string;
  readonly namespace: ResolvedNamespace;
  /** Override of the namespace with exactly this identifier. */
  readonly stored: StoredOverride | undefined;
  /** Another override that this object manages, because its identifier or namespace has changed. */
  readonly former: StoredOverride | undefined;
  /** All RatelimitOverride objects with the same identifier that are allowed in the namespace, including this one. */
  readonly claimants: readonly ManifestObject[];
  readonly digest?: string | undefined;
}

export async function gatherOverride(object: ManifestObject, ctx: Context): Promise<ObservedOverride> {
  const parsed = parseSpec(RatelimitOverrideSpec, object);
  const manager = managerOf(ctx, object);
  // Reads the digest first, because it must not be newer than the rest.
  const owned = await findOwned(ctx.api, "override", manager);
  const target = targetOf(object, ctx);
  const namespace = await resolve(object, target, ctx);
  const identifier = identifierIn(object);
  const stored =
    "namespaceId" in namespace && identifier !== undefined
      ? await findOverride({ namespaceId: namespace.namespaceId, identifier }, ctx)
      : undefined;
  const former =
    owned === undefined || owned.id === stored?.overrideId ? undefined : await readOwned(owned, manager, ctx);
  const claimants = competitorsOf(object, ctx.source)
    // Ignores objects that are not allowed in the namespace, because they would block the allowed ones.
    .filter(({ metadata }) => target === undefined || mayReferTo(target, metadata.namespace));
  return { object, parsed, manager, namespace, stored, former, claimants, digest: owned?.digest };
}

function targetOf(object: ManifestObject, { source }: Context): ManifestObject | undefined {
  const ref = namespaceRefOf(object);
  return ref === undefined ? undefined : source.get("RatelimitNamespace", ref);
}

async function resolve(
  object: ManifestObject,
  target: ManifestObject | undefined,
  ctx: Context,
): Promise<ResolvedNamespace> {
  if (target !== undefined) return await resolveNamespace(target, object.metadata.namespace, ctx);
  const ref = namespaceRefOf(object);
  const which = ref === undefined ? "that is referred to" : `${ref.namespace}/${ref.name}`;
  const message = `The RatelimitNamespace ${which} does not exist. Create it, or correct spec.namespaceRef.`;
  return { verdict: progressing("DependencyNotReady", message) };
}

async function findOverride(
  { namespaceId, identifier }: { namespaceId: string; identifier: string },
  { api }: Context,
): Promise<StoredOverride | undefined> {
  const found = foundOr404(await api.call("ratelimit.getOverride", { namespace: namespaceId, identifier }));
  // The response contains the active override, which may be a matching pattern with another identifier.
  if (found === undefined || found.identifier !== identifier) return undefined;
  return await withManager(found, namespaceId, api);
}

type Override = { overrideId: string; identifier: string; limit: number; duration: number };

async function withManager(
  { overrideId, identifier, limit, duration }: Override,
  namespaceId: string,
  api: Context["api"],
): Promise<StoredOverride | undefined> {
  const managed = await findManaged(api, "override", overrideId);
  if (managed === undefined) return undefined;
  const { manager, lastManager, async = false } = managed;
  return { overrideId, namespaceId, identifier, limit, durationMs: duration, async, manager, lastManager };
}

/** Returns the override of a manager with all its settings. */
async function readOwned(
  { id, namespaceId, async = false }: Owned,
  manager: string,
  { api }: Context,
): Promise<StoredOverride | undefined> {
  if (namespaceId === undefined) return undefined;
  // The page begins with the override whose id is the cursor (api-v2.md, section 8).
  const page = foundOr404(await api.call("ratelimit.listOverrides", { namespace: namespaceId, cursor: id, limit: 1 }));
  const found = page?.find(({ overrideId }) => overrideId === id);
  if (found === undefined) return undefined;
  const { identifier, limit, duration } = found;
  return { overrideId: id, namespaceId, identifier, limit, durationMs: duration, async, manager };
}
