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
    .describe("Credits left; null is unlimited, and clears the refill.")
    .meta({ examples: [1000] }),
  refill: Refill.nullable().optional().describe("null clears the refill. Not with unlimited credits."),
});

const Body = z.strictObject({
  keyId: KeyId,
  name: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .optional()
    .describe("null removes it.")
    .meta({ examples: ["Billing"] }),
  externalId: ExternalId.nullable().optional().describe("null detaches the key from its identity."),
  meta: Meta.nullable().optional().describe("Replaces all of it; null removes it."),
  expires: Expires.nullable().optional().describe("null: never."),
  credits: CreditsUpdate.nullable().optional().describe("null: unlimited, without a refill."),
  ratelimits: RatelimitsIn.nullable().optional().describe("Replaces all of them; null or `[]` removes all."),
  enabled: z.boolean().optional().describe("A disabled key verifies as DISABLED."),
  roles: z.array(UpdateRoleName).max(100).optional().describe("Replaces all of them; `[]` removes all."),
  permissions: z
    .array(UpdateSlug)
    .max(1000)
    .optional()
    .describe("Replaces all direct ones; `[]` removes all. Permissions that do not exist yet are created."),
});
type Body = z.output<typeof Body>;

const required = { updateKey: onApi("update_key") };

export const updateKey = defineProcedure({
  path: "keys.updateKey",
  effect: "change",
  summary: "Change a key",
  description: "Changes the given fields; omitted fields stay. The next verification uses the new values.",
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

/** For link changes, the audit log records only that the key was updated. */
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
