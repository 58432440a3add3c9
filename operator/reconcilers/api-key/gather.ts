import type { Data } from "../../../core/api/procedures.ts";
import { ApiKeySpec } from "../../../core/manifests/api-key.ts";
import type { FoundSecret, ManifestObject } from "../../source/contract.ts";
import { competitorsOf } from "../claims.ts";
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
  /** All stored keys of this object, sorted so that the newest is first. */
  readonly keys: readonly StoredKey[];
  /** ApiKey objects of the same Kubernetes namespace that use the same Secret, including this one. */
  readonly claimants: readonly ManifestObject[];
  /** Time of the database, by which keys are created and expire; the operator's clock may differ. */
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
    // Skips the Secret of a deleted object: revoking its keys does not require the Secret, so the operator then needs no permission on
    // Secrets.
    secret:
      secretName === undefined || (isDeleting && secrets.areCollected)
        ? { state: "absent" }
        : await secrets.find(object, secretName),
    keys: listed.data.keys,
    claimants: competitorsOf(object, ctx.source),
    nowMs: listed.data.now,
  };
}
