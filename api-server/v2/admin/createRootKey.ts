import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { issueRootKey } from "../../domain/administration/root-keys.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  Environment,
  RootKeyExpires,
  RootKeyId,
  RootKeyName,
  RootKeyStart,
  RootKeyTuples,
  readPermissions,
  requireToGrant,
  Secret,
} from "./root-key-schemas.ts";

const Body = z.strictObject({
  name: RootKeyName,
  permissions: RootKeyTuples,
  environment: Environment.optional(),
  expires: RootKeyExpires.optional(),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  rootKeyId: RootKeyId,
  rootKey: Secret,
  start: RootKeyStart,
});
type Data = z.input<typeof Data>;

const required = { createRootKey: onWorkspace("create_root_key") };

export const createRootKey = defineProcedure({
  path: "admin.createRootKey",
  effect: "change",
  summary: "Create a root key",
  description:
    "The root key acts in the caller's workspace, and can get only permissions that the caller holds. Only a hash of the secret is stored.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { name, environment, expires } = call.body;
  const { workspaceId } = call.caller;
  call.require(required.createRootKey);
  const permissions = readPermissions(call.body.permissions);
  requireToGrant(call, permissions);
  const { rootKeyId, rootKey, start } = await issueRootKey(administratorOf(call), {
    workspaceId,
    permissions,
    name,
    ...(environment === undefined ? {} : { environment }),
    ...(expires === undefined ? {} : { expiresAtMs: expires }),
  });
  return { rootKeyId, rootKey, start };
}
