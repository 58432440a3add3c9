import type { PoolClient } from "pg";
import * as z from "zod";
import type { AuditEvent } from "../../db/audit.ts";
import { replaceKeyPermissions, replaceKeyRoles } from "../../db/key-changes.ts";
import { changeKey } from "../../domain/keys/change-key.ts";
import { ensurePermissions, getRolesByName } from "../../domain/permissions/permission-links.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  Empty,
  Expires,
  ExternalId,
  KeyId,
  Meta,
  RatelimitsIn,
  Refill,
  UpdateRoleName,
  UpdateSlug,
} from "../schemas.ts";

const CreditsUpdate = z.strictObject({
  remaining: z
    .int()
    .min(0)
    .nullable()
    .optional()
    .describe("Remaining credits; null makes the key unlimited and removes its refill.")
    .meta({ examples: [1000] }),
  refill: Refill.nullable()
    .optional()
    .describe("Refill of the credits; null removes it. Not allowed with unlimited credits."),
});

const Body = z.strictObject({
  keyId: KeyId,
  name: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .optional()
    .describe("New display name; null removes it.")
    .meta({ examples: ["Billing"] }),
  externalId: ExternalId.nullable()
    .optional()
    .describe("External id of the new owner; null detaches the key from its identity."),
  meta: Meta.nullable().optional().describe("New metadata. It replaces all existing metadata; null removes it."),
  expires: Expires.nullable().optional().describe("New expiry, Unix ms; null means that the key never expires."),
  credits: CreditsUpdate.nullable().optional().describe("null makes the credits unlimited and removes the refill."),
  ratelimits: RatelimitsIn.nullable()
    .optional()
    .describe("New limits. They replace all limits of the key; null or `[]` removes all."),
  enabled: z
    .boolean()
    .optional()
    .describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  roles: z
    .array(UpdateRoleName)
    .max(100)
    .optional()
    .describe("Names of roles. They replace all roles of the key; `[]` removes all."),
  permissions: z
    .array(UpdateSlug)
    .max(1000)
    .optional()
    .describe(
      "Slugs that replace all direct permissions of the key; `[]` removes all. Missing permissions are created.",
    ),
});
type Body = z.output<typeof Body>;

const required = { updateKey: onApi("update_key") };

export const updateKey = defineProcedure({
  path: "keys.updateKey",
  effect: "change",
  summary: "Change a key",
  description: "Changes the given fields; omitted fields remain unchanged. The next verification uses the new values.",
  permissions: required,
  errors: ["key_not_found", "role_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { keyId, ...changes } = call.body;
  await changeKey(call, {
    keyId,
    changes,
    needed: required.updateKey,
    refillField: "body.credits.refill",
    relink: (tx) => relink(tx, call),
  });
  return {};
}

/** Changes the links of the key. The audit log records only that the key was updated. */
async function relink(tx: PoolClient, call: Call<Body>): Promise<readonly AuditEvent[]> {
  const { body, caller } = call;
  const { workspaceId } = caller;
  const ref = { workspaceId, keyId: body.keyId };
  if (body.roles !== undefined) {
    const roles = await getRolesByName(tx, workspaceId, body.roles);
    await replaceKeyRoles(tx, { ...ref, roleIds: roles.map(({ id }) => id) });
  }
  if (body.permissions === undefined) return [];
  const { permissions, events } = await ensurePermissions(tx, call, body.permissions);
  await replaceKeyPermissions(tx, { ...ref, permissionIds: permissions.map(({ id }) => id) });
  return [...events];
}
