import * as z from "zod";
import { DeletionPolicy } from "../../../core/manifests/fields.ts";
import { inManifestTransaction } from "../../domain/managed/manifests/apply-object.ts";
import { DELETE } from "../../domain/managed/manifests/delete-object.ts";
import { TO_DELETE } from "../../domain/managed/manifests/permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { DryRun, ManagerOfManifest, ManifestKind, OnlyIfFence, requireKind, StoredIds } from "./manifests.ts";

const Body = z.strictObject({
  manager: ManagerOfManifest,
  kind: ManifestKind,
  deletionPolicy: DeletionPolicy.optional()
    .describe(
      "`spec.deletionPolicy` of the manifest. Default: releases the API of a policy, deletes a rate-limit namespace and an override, and deletes a role that no key has.",
    )
    .meta({ examples: ["Orphan"] }),
  dryRun: DryRun,
  onlyIfFence: OnlyIfFence,
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  outcome: z
    .enum(["deleted", "released", "absent"])
    .describe("`released`: the object still exists, but has no manager. `absent`: the manifest managed nothing.")
    .meta({ examples: ["deleted"] }),
  ids: StoredIds.describe("Ids of the deleted or released objects."),
});
type Data = z.input<typeof Data>;

const required = TO_DELETE;

export const deleteObject = defineProcedure({
  path: "managed.deleteObject",
  effect: "change",
  summary: "Delete the objects that a manifest manages",
  description:
    "Deletes or releases the stored objects of one manifest, in one transaction. A policy is always deleted; `deletionPolicy` applies to its API. An API with keys is not deleted. Repeating the call changes nothing.",
  permissions: required,
  errors: ["protected_resource", "api_has_keys", "stale_leader"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body } = call;
  requireKind(body.manager, body.kind);
  return await inManifestTransaction(call, body, (transaction) => DELETE[body.kind](transaction, body));
}
