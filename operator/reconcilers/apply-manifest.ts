import type { Data, Input } from "../../core/api/procedures.ts";
import type { DeletionPolicy } from "../../core/manifests/fields.ts";
import type { Refusal } from "../api/client.ts";
import type { ManifestObject } from "../source/contract.ts";
import { olderCompetitor } from "./claims.ts";
import { type Context, managedBy, managerOf } from "./context.ts";
import { labelFor, labelOf } from "./names-in-messages.ts";
import { stalled, type Verdict } from "./plan.ts";
import type { Ownership } from "./reconcile-object.ts";
import { verdictOn } from "./refusals.ts";
import { isHeld, wasReady } from "./status.ts";

/* Stores each manifest in one call: the API plans and writes in one transaction. */

type StoredKind = Input<"managed.applyObject">["kind"];
export type Applied = Data<"managed.applyObject">;

export interface Application {
  /** Spec without unknown fields. */
  readonly spec: object;
  /** Managers in other Kubernetes namespaces to whose objects the manifest may refer. */
  readonly mayReferTo?: readonly string[];
  /** State of the Secret of an ApiKey. */
  readonly secret?: Input<"managed.applyObject">["secret"];
  /** All objects with the same claim, including this one. The oldest of them creates or adopts the stored object. */
  readonly claimants?: readonly ManifestObject[];
  /** Returns the message if an older object has the same claim. */
  readonly sayCompetitor: (competitor: string) => string;
}

export type ApplyResult =
  | { readonly applied: Applied; readonly drift: string | undefined; readonly verdict?: never }
  | { readonly applied?: never; readonly verdict: Verdict; readonly refusal: Refusal }
  /** The namespace was assigned to another workspace in the meantime. */
  | "moved";

/**
 * Stores a manifest. Sets the finalizer before the first call that may create an object, and removes it if the API refuses. If the object
 * was refused before, tries a dry run first, so that the finalizer is not written on every retry.
 */
export async function applyManifest(
  object: ManifestObject,
  ctx: Context,
  ownership: Ownership,
  { spec, secret, mayReferTo = [], claimants = [], sayCompetitor }: Application,
): Promise<ApplyResult> {
  const { uid, generation, namespace } = object.metadata;
  const competitor = olderCompetitor(object, claimants);
  const body: Input<"managed.applyObject"> = {
    manager: managerOf(ctx, object),
    kind: object.kind as StoredKind,
    spec: { ...spec },
    mayReferTo: [...mayReferTo],
    // An object with an older competitor keeps what it already manages, but takes over nothing else.
    onlyIfManaged: competitor !== undefined,
    ...(object.kind === "ApiKeyPolicy" ? { uid, generation } : {}),
    ...(secret === undefined ? {} : { secret }),
  };
  const call = async (dryRun: boolean): Promise<ApplyResult> => {
    const { data, refusal } = await ctx.api.call("managed.applyObject", { ...body, dryRun, ...fenceOf(ctx) });
    if (data !== undefined) return { applied: data, drift: driftOf(object, data) };
    if (refusal.kind !== "not_managed" || competitor === undefined) {
      return { verdict: verdictOn(refusal, object, ctx), refusal };
    }
    return { verdict: stalled("Conflict", sayCompetitor(labelFor(competitor, namespace))), refusal };
  };
  if (ownership.isOwned) return logged(await call(false), object, ctx);
  if (isHeld(object)) {
    const tried = await call(true);
    if (tried !== "moved" && tried.verdict !== undefined) return tried;
  }
  if (!(await ownership.own())) return "moved";
  const result = logged(await call(false), object, ctx);
  if (result !== "moved" && result.verdict !== undefined) await ownership.disown();
  return result;
}

function logged(result: ApplyResult, object: ManifestObject, ctx: Context): ApplyResult {
  if (result !== "moved" && result.applied !== undefined && result.applied.outcome !== "unchanged") {
    const { outcome } = result.applied;
    const { generation } = object.metadata;
    ctx.log.info({ object: labelOf(object), generation, outcome, changes: pathsOf(result.applied) }, "manifest stored");
  }
  return result;
}

const PATHS_MAX = 10;

const pathsOf = ({ changes }: Pick<Applied, "changes">): string[] =>
  changes.slice(0, PATHS_MAX).map(({ path }) => path);

/** Returns what another writer has changed; `undefined` if there is nothing, or if this generation was not stored before. */
function driftOf(object: ManifestObject, { outcome, changes }: Applied): string | undefined {
  if (!wasReady(object) || outcome === "unchanged") return undefined;
  // A new key is issued if a rotation is due or the Secret was deleted.
  if (outcome === "created") return object.kind === "ApiKey" ? undefined : "it was deleted";
  if (changes.length === 0) return undefined;
  return `${pathsOf({ changes }).join(", ")}${changes.length > PATHS_MAX ? ` and ${changes.length - PATHS_MAX} more` : ""}`;
}

/** Returns the manifest that manages an API; `undefined` if no manifest of this workspace and cluster manages it. */
export async function ownerOfApi(id: string, ctx: Context): Promise<ManifestObject | undefined> {
  const { data } = await ctx.api.call("managed.getObject", { kind: "api", id });
  return data?.manager === undefined ? undefined : managedBy(ctx, "ApiKeyPolicy", data.manager);
}

/**
 * Deletes or releases what a manifest manages. Returns the verdict if the API refuses; `undefined` if nothing remains.
 * @param deletionPolicy `undefined` for the default of the kind.
 */
export async function deleteManifest(
  object: ManifestObject,
  ctx: Context,
  deletionPolicy: DeletionPolicy | undefined,
): Promise<Verdict | undefined> {
  const { refusal } = await ctx.api.call("managed.deleteObject", {
    manager: managerOf(ctx, object),
    kind: object.kind as StoredKind,
    ...(deletionPolicy === undefined ? {} : { deletionPolicy }),
    dryRun: false,
    ...fenceOf(ctx),
  });
  return refusal && verdictOn(refusal, object, ctx);
}

const fenceOf = ({ fence }: Context): { readonly onlyIfFence?: number } =>
  fence === undefined ? {} : { onlyIfFence: fence };
