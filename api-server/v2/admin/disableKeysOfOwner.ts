import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { enableKeysOfOwner } from "../../domain/keys/enable-keys-of-owner.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { KeyId, ShortApiId } from "../schemas.ts";

const Body = z.strictObject({
  externalId: z
    .string()
    .min(1)
    .max(255)
    .describe("The owner's external id in your system; case-sensitive.")
    .meta({ examples: ["user_123"] }),
  apiId: ShortApiId.optional().describe("Changes only keys of this API. Default: keys of all APIs."),
  enabled: z.boolean().default(false).describe("Whether to enable the keys instead of disabling them."),
  dryRun: z.boolean().default(false).describe("Whether to only count the keys, without changing any."),
});
type Body = z.output<typeof Body>;

const count = (description: string) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [3] });

const Data = z.strictObject({
  changed: count("Number of keys that were changed or, in a dry run, that would be changed."),
  left: count("Number of keys that remain to be changed, because one call changes at most a few thousand. Call again."),
  unchanged: count("Number of keys that already were in the requested state."),
  managed: count("Number of keys that manifests manage. They are skipped."),
  managedKeys: z
    .array(
      z.strictObject({
        keyId: KeyId,
        manager: z
          .string()
          .describe("Manager of the key: `<cluster>/<kind>/<namespace>/<name>` of its manifest.")
          .meta({ examples: ["main/ApiKey/shop/billing"] }),
      }),
    )
    .describe("The first 20 of the managed keys. Managed keys are not changed."),
});
type Data = z.input<typeof Data>;

const required = { updateKey: onApi("update_key", "for every API in which the owner has keys") };

export const disableKeysOfOwner = defineProcedure({
  path: "admin.disableKeysOfOwner",
  effect: "change",
  summary: "Disable all keys of an owner",
  description:
    "Disables, or enables again, the keys of an identity and the keys for which v1 stored the same owner. Keys that a manifest manages are skipped and listed, because their manifests would revert the change. The call can be repeated safely.",
  permissions: required,
  errors: ["api_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { apiId, externalId, enabled, dryRun } = body;
  if (apiId !== undefined) {
    const { workspaceId } = caller;
    if ((await findApi(deps.db, { workspaceId, apiId })) === undefined) throw apiNotFound(apiId);
    call.require(required.updateKey, apiId);
  } else if (!call.holdsForSome(required.updateKey)) {
    // Checks the permission first, so that a caller without it learns nothing about the owner or about which ids exist.
    call.require(required.updateKey);
  }
  const { managedKeys, ...counts } = await enableKeysOfOwner(call, {
    apiId,
    externalId,
    enabled,
    dryRun,
    needed: required.updateKey,
  });
  return { ...counts, managedKeys: managedKeys.map(({ id, manager }) => ({ keyId: id, manager })) };
}
