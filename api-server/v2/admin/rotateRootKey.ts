import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { ROTATION_OVERLAP_MAX_MS, rotateRootKey as rotate } from "../../domain/administration/root-keys.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { unixMs } from "../schemas.ts";
import {
  RootKeyExpires,
  RootKeyId,
  RootKeyStart,
  requireToGrant,
  rootKeyNotFound,
  Secret,
} from "./root-key-schemas.ts";

const Body = z.strictObject({
  rootKeyId: RootKeyId,
  overlap: z
    .int()
    .min(0)
    .max(ROTATION_OVERLAP_MAX_MS)
    .describe(
      "Time for which both root keys are valid, in ms, at most 90 days. With 0, the old root key expires immediately.",
    )
    .meta({ examples: [86_400_000] }),
  expires: RootKeyExpires.describe(
    "When the successor expires, Unix milliseconds; null means never. Default: the successor gets the original lifetime of the old root key.",
  )
    .nullable()
    .optional(),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  rootKeyId: RootKeyId.describe("Id of the successor."),
  rootKey: Secret,
  start: RootKeyStart,
  expires: unixMs("When the successor expires, Unix milliseconds. Omitted if it never expires.").optional(),
  predecessorExpiresAt: unixMs("When the old root key expires, Unix milliseconds."),
});
type Data = z.input<typeof Data>;

const required = { createRootKey: onWorkspace("create_root_key"), updateRootKey: onWorkspace("update_root_key") };

export const rotateRootKey = defineProcedure({
  path: "admin.rotateRootKey",
  effect: "change",
  summary: "Replace a root key with a new one",
  description:
    "The successor gets the name, environment and permissions of the old root key. The caller must hold all of these permissions. Each of the two root keys names the other. A root key can replace itself.",
  permissions: required,
  errors: ["root_key_not_found", "root_key_rotated"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { rootKeyId, overlap: overlapMs, expires } = call.body;
  const { workspaceId } = call.caller;
  call.require(required.createRootKey);
  call.require(required.updateRootKey);
  const made = await rotate(
    administratorOf(call),
    { workspaceId, rootKeyId, overlapMs, ...(expires === undefined ? {} : { expiresAt: expires }) },
    ({ permissions }) => requireToGrant(call, permissions),
  );
  if (made === "NOT_FOUND") throw rootKeyNotFound(rootKeyId);
  if (made === "ROTATED") throw new PublicError("root_key_rotated", `Root key ${rootKeyId} already has a successor.`);
  const { rootKeyId: successorId, rootKey, start, expiresAt, endsAt } = made;
  return {
    rootKeyId: successorId,
    rootKey,
    start,
    ...(expiresAt === null ? {} : { expires: expiresAt }),
    predecessorExpiresAt: endsAt,
  };
}
