import type { PoolClient } from "pg";
import * as z from "zod";
import type { AuditEvent } from "../../db/audit.ts";
import { changeKey, type KeyChanges } from "../../domain/keys/change-key.ts";
import { permissionLinks, roleLinks, writeLinks } from "../../domain/keys/key-links.ts";
import { permissionsOfLinks, rolesOfLinks } from "../../domain/permissions/named-links.ts";
import { onApi, onRbac } from "../../domain/permissions/required-permissions.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty, KeyId, Meta } from "../schemas.ts";
import { Expires, KeyName, Remaining } from "./key-fields.ts";
import { checkLegacyRefill, LegacyRefill, toRefill } from "./legacy-credits.ts";
import { checkLegacyRatelimit, LegacyRatelimit, withLegacyRatelimit } from "./legacy-limit.ts";
import { ExternalId, OwnerId, ownerOf } from "./legacy-owner.ts";
import { checkPermissionItems, checkRoleItems, PermissionItems, RoleItems, toLink } from "./link-schemas.ts";

const Body = z.object({
  keyId: KeyId,
  name: KeyName.nullable().optional().describe("New display name; null removes it."),
  externalId: ExternalId.nullable()
    .optional()
    .describe("External id of the new owner; null detaches the key from its identity."),
  ownerId: OwnerId.nullable().optional(),
  meta: Meta.nullable().optional().describe("New metadata. It replaces all existing metadata; null removes it."),
  expires: Expires.nullable().optional().describe("New expiry, Unix ms; null means that the key never expires."),
  remaining: Remaining.min(0)
    .nullable()
    .optional()
    .describe("Remaining credits; null makes the key unlimited and removes its refill."),
  refill: LegacyRefill.nullable()
    .optional()
    .describe("Refill of the credits; null removes it. Not allowed with unlimited credits."),
  ratelimit: LegacyRatelimit.nullable()
    .optional()
    .describe("The limit `default` of the key; null removes it. Other limits remain unchanged."),
  enabled: z
    .boolean()
    .optional()
    .describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  roles: RoleItems.optional(),
  permissions: PermissionItems.optional(),
});
type Body = z.output<typeof Body>;

const required = {
  updateKey: onApi("update_key"),
  addRoleToKey: onRbac("add_role_to_key", "with `roles`"),
  createRole: onRbac("create_role", "when a role is created"),
  addPermissionToKey: onRbac("add_permission_to_key", "with `permissions`"),
  createPermission: onRbac("create_permission", "when a permission is created"),
};

export const updateKey = defineV1Procedure({
  path: "keys.updateKey",
  method: "POST",
  successor: "keys.updateKey",
  effect: "change",
  summary: "Change a key",
  description: "Changes the given fields; omitted fields remain unchanged. The next verification uses the new values.",
  permissions: required,
  errors: ["key_not_found", "role_not_found", "permission_not_found", "managed_by_manifest"],
  input: Body,
  check,
  response: Empty,
  handle,
});

function check({ remaining, refill, ratelimit, roles = [], permissions = [] }: Body): void {
  checkLegacyRefill(refill);
  checkLegacyRatelimit(ratelimit);
  if (remaining === null && refill !== undefined && refill !== null) {
    throw invalidField("body.refill", "a refill requires limited credits");
  }
  checkRoleItems(roles);
  checkPermissionItems(permissions);
}

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  await changeKey(call, {
    keyId: call.body.keyId,
    changes: toChanges(call.body),
    needed: required.updateKey,
    refillField: "body.refill",
    relink: (tx) => relink(tx, call),
  });
  return {};
}

/** Sets the links. As in setRoles and setPermissions, the permission to add links is sufficient to remove others. */
async function relink(tx: PoolClient, call: Call<Body, typeof required>): Promise<readonly AuditEvent[]> {
  const { body, caller } = call;
  const { keyId, roles, permissions } = body;
  const key = { workspaceId: caller.workspaceId, keyId };
  if (roles !== undefined) call.require(required.addRoleToKey);
  if (permissions !== undefined) call.require(required.addPermissionToKey);
  const events: AuditEvent[] = [];
  if (roles !== undefined) {
    const { found, events: made } = await rolesOfLinks(tx, call, roles.map(toLink), required.createRole);
    events.push(...(await writeLinks(tx, key, roleLinks, { wanted: () => found, events: made })).events);
  }
  if (permissions !== undefined) {
    const links = permissions.map(toLink);
    const { found, events: made } = await permissionsOfLinks(tx, call, links, required.createPermission);
    events.push(...(await writeLinks(tx, key, permissionLinks, { wanted: () => found, events: made })).events);
  }
  return events;
}

function toChanges({ name, meta, expires, enabled, remaining, refill, ratelimit, ...owned }: Body): KeyChanges {
  return {
    name: name === "" ? null : name,
    meta,
    expires,
    enabled,
    externalId: ownerOf(owned),
    storesOwner: true,
    credits:
      remaining === undefined && refill === undefined ? undefined : { remaining, refill: refill && toRefill(refill) },
    ratelimits: ratelimit === undefined ? undefined : (held) => withLegacyRatelimit(held, ratelimit),
  };
}
