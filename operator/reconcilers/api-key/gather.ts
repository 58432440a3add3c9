import type { Data } from "../../../core/api/procedures.ts";
import { ApiKeySpec } from "../../../core/manifests/api-key.ts";
import type { FoundSecret, ManifestObject } from "../../source/contract.ts";
import { rivalsOf } from "../claims.ts";
import { type Context, managerOf } from "../context.ts";
import { secretNameIn } from "../raw-spec.ts";
import { type ParsedSpec, parseSpec } from "../spec.ts";
import { type ResolvedApi, resolveApi } from "./resolve-api.ts";

export type StoredKey = Data<"managed.listKeys">["keys"][number];

export interface ObservedApiKey {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<ApiKeySpec>;
  readonly manager: string;
  readonly api: ResolvedApi;
  readonly secret: FoundSecret;
  /** All keys that this object has in the store, the newest first. */
  readonly keys: readonly StoredKey[];
  /** ApiKey objects of the same Kubernetes namespace with the same Secret, this one too. */
  readonly claimants: readonly ManifestObject[];
  /** The store's time, which also says when its keys were made and end: the operator's own clock may differ. */
  readonly nowMs: number;
}

export async function gatherApiKey(object: ManifestObject, ctx: Context): Promise<ObservedApiKey> {
  const parsed = parseSpec(ApiKeySpec, object);
  const manager = managerOf(ctx, object);
  const listed = await ctx.api.call("managed.listKeys", { manager });
  if (listed.data === undefined) throw new Error(`${listed.refusal.kind}: ${listed.refusal.detail}`);
  const { secrets } = ctx.source;
  const secretName = secretNameIn(object);
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  return {
    object,
    parsed,
    manager,
    api: await resolveApi(object, ctx),
    // The keys of an object that is being deleted are revoked, whatever its Secret has: no right on Secrets may be missing for that.
    secret:
      secretName === undefined || (isDeleting && secrets.areCollected)
        ? { state: "absent" }
        : await secrets.find(object, secretName),
    keys: listed.data.keys,
    claimants: rivalsOf(object, ctx.source),
    nowMs: listed.data.now,
  };
}
