import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { addedPermissions, reducesAuthority } from "../../../core/permissions/root-key-change.ts";
import type { RootKeySettings } from "../../db/root-keys.ts";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { changeRootKey } from "../../domain/administration/root-keys.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeRootKey } from "./describe-root-keys.ts";
import {
  Environment,
  isOwn,
  RootKeyDetails,
  RootKeyExpires,
  RootKeyId,
  RootKeyName,
  RootKeyTuples,
  readPermissions,
  requireToGrant,
  rootKeyIsCaller,
  rootKeyNotFound,
} from "./root-key-schemas.ts";

const Body = z.strictObject({
  rootKeyId: RootKeyId,
  name: RootKeyName.optional(),
  environment: Environment.nullable().optional(),
  permissions: RootKeyTuples.optional(),
  expires: RootKeyExpires.nullable().optional(),
  enabled: z
    .boolean()
    .describe("Whether the root key is enabled; requests with a disabled root key get 401.")
    .optional(),
  revision: z
    .int()
    .min(1)
    .optional()
    .describe(
      "Expected revision. If the root key's revision differs, the root key is not changed. Default: any revision.",
    )
    .meta({ examples: [1] }),
});
type Body = z.output<typeof Body>;

const required = { updateRootKey: onWorkspace("update_root_key") };

export const updateRootKey = defineProcedure({
  path: "admin.updateRootKey",
  effect: "change",
  summary: "Change a root key",
  description:
    "Omitted members remain unchanged; null removes a value. The caller must hold what the change grants: new permissions or, if it enables the root key or extends its expiry, all of the root key's permissions.",
  permissions: required,
  errors: ["root_key_not_found", "root_key_changed", "root_key_is_caller"],
  addition: true,
  body: Body,
  data: RootKeyDetails,
  handle,
});

const authorityOf = ({ permissions, enabled, expires_at: expiresAt }: RootKeySettings) => ({
  permissions,
  enabled,
  expiresAt,
});

async function handle(call: Call<Body, typeof required>): Promise<RootKeyDetails> {
  const { body, caller, deps } = call;
  const { rootKeyId, revision, expires, permissions, name, environment, enabled } = body;
  call.require(required.updateRootKey);
  const change = {
    ...(name === undefined ? {} : { name }),
    ...(environment === undefined ? {} : { environment }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(expires === undefined ? {} : { expiresAt: expires }),
    ...(permissions === undefined ? {} : { permissions: readPermissions(permissions) }),
  };
  const ref = { workspaceId: caller.workspaceId, rootKeyId };
  const row = await changeRootKey(administratorOf(call), { ...ref, ...change }, (before, after) => {
    if (revision !== undefined && revision !== before.revision) {
      throw new PublicError(
        "root_key_changed",
        `Root key ${rootKeyId} has revision ${before.revision}, but the change expects revision ${revision}.`,
      );
    }
    const powers = [authorityOf(before), authorityOf(after)] as const;
    requireToGrant(call, addedPermissions(...powers));
    if (isOwn(call, rootKeyId) && reducesAuthority(...powers)) throw rootKeyIsCaller(rootKeyId);
  });
  if (row === undefined) throw rootKeyNotFound(rootKeyId);
  return describeRootKey(deps.db, { workspaceId: caller.workspaceId, row, nowMs: deps.nowMs() });
}
