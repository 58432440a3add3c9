import { RatelimitOverrideSpec, RatelimitOverrideStatus } from "../../../core/manifests/ratelimit-override.ts";
import type { ObjectKey } from "../../runtime/object-key.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { type Context, managerOf } from "../context.ts";
import { type ResolvedNamespace, resolveNamespace } from "../namespace-ref.ts";
import { progressing } from "../plan.ts";
import type { Learned } from "../reconcile-object.ts";
import { type ParsedSpec, parseSpec, parseStatus } from "../spec.ts";
import { findManaged, foundOr404 } from "../stored.ts";

export interface StoredOverride {
  readonly overrideId: string;
  readonly namespaceId: string;
  readonly identifier: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly async: boolean;
  readonly manager: string | undefined;
}

export interface ObservedOverride {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<RatelimitOverrideSpec>;
  readonly manager: string;
  readonly namespace: ResolvedNamespace;
  /** The override for this very identifier in the namespace. */
  readonly stored: StoredOverride | undefined;
  /** Another one that this object manages: of before its identifier or namespace changed. */
  readonly former: StoredOverride | undefined;
  /** All RatelimitOverride objects for the same identifier of the same namespace, this one too. */
  readonly claimants: readonly ManifestObject[];
}

export async function gather(object: ManifestObject, learned: Learned, ctx: Context): Promise<ObservedOverride> {
  const parsed = parseSpec(RatelimitOverrideSpec, object);
  const manager = managerOf(ctx, object);
  const status = parseStatus(RatelimitOverrideStatus, object);
  const namespace = resolve(object, ctx);
  const { identifier } = claimOf(object) ?? {};
  const namespaceId = "namespaceId" in namespace ? namespace.namespaceId : status.namespaceId;
  const stored =
    namespaceId === undefined || identifier === undefined
      ? undefined
      : await findOverride({ namespaceId, identifier }, ctx);
  const ownId = learned.overrideId ?? status.overrideId;
  const former =
    ownId === undefined || status.namespaceId === undefined || ownId === stored?.overrideId
      ? undefined
      : await findById({ namespaceId: status.namespaceId, overrideId: ownId, manager }, ctx);
  const claim = JSON.stringify(claimOf(object));
  const claimants = ctx.source.list("RatelimitOverride").filter((other) => JSON.stringify(claimOf(other)) === claim);
  return { object, parsed, manager, namespace, stored, former, claimants };
}

function resolve(object: ManifestObject, { source }: Context): ResolvedNamespace {
  const ref = namespaceRefOf(object);
  const target = ref === undefined ? undefined : source.get("RatelimitNamespace", ref);
  if (target !== undefined) return resolveNamespace(target, object.metadata.namespace);
  const which = ref === undefined ? "that is referred to" : `${ref.namespace}/${ref.name}`;
  const message = `There is no RatelimitNamespace ${which}. Create it, or correct spec.namespaceRef.`;
  return { verdict: progressing("DependencyNotReady", message) };
}

async function findOverride(
  { namespaceId, identifier }: { namespaceId: string; identifier: string },
  { api }: Context,
): Promise<StoredOverride | undefined> {
  const found = foundOr404(await api.call("ratelimit.getOverride", { namespace: namespaceId, identifier }));
  // The answer is the override in force, which may be a pattern that fits.
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
  const { manager, async = false } = managed;
  return { overrideId, namespaceId, identifier, limit, durationMs: duration, async, manager };
}

/** An override by its id, if it is this manager's. */
async function findById(
  { namespaceId, overrideId, manager }: { namespaceId: string; overrideId: string; manager: string },
  { api }: Context,
): Promise<StoredOverride | undefined> {
  const managed = await findManaged(api, "override", overrideId);
  if (managed?.manager !== manager) return undefined;
  // A page begins with the row whose id is the cursor (api/v2 section 8).
  const body = { namespace: namespaceId, cursor: overrideId, limit: 1 };
  const page = foundOr404(await api.call("ratelimit.listOverrides", body));
  const found = page?.find((override) => override.overrideId === overrideId);
  return found === undefined ? undefined : await withManager(found, namespaceId, api);
}

export function namespaceRefOf({ spec, metadata }: ManifestObject): ObjectKey | undefined {
  const { namespaceRef } = (spec ?? {}) as { namespaceRef?: { name?: unknown; namespace?: unknown } };
  if (typeof namespaceRef?.name !== "string") return undefined;
  const namespace = typeof namespaceRef.namespace === "string" ? namespaceRef.namespace : metadata.namespace;
  return { namespace, name: namespaceRef.name };
}

/** What the object wants to be alone in having. */
export function claimOf(object: ManifestObject): { ref: ObjectKey; identifier: string } | undefined {
  const { identifier } = (object.spec ?? {}) as { identifier?: unknown };
  const ref = namespaceRefOf(object);
  if (ref === undefined || typeof identifier !== "string" || identifier.length === 0 || identifier.length > 512)
    return undefined;
  return { ref, identifier };
}
