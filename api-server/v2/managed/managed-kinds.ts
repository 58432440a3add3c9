import * as z from "zod";
import type { PublicError } from "../../../core/errors.ts";
import { MANAGER } from "../../../core/manifests/manager.ts";
import { MANAGED_KINDS } from "../../db/managed-objects.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { onApi, onNamespace, onRbac } from "../../domain/permissions/required-permissions.ts";

/* Schemas, required permissions and 404 errors of the managed.* procedures, by kind of object. */

export const ManagedKind = z.enum(MANAGED_KINDS);
export type ManagedKind = z.output<typeof ManagedKind>;

export const Manager = z
  .string()
  .max(1015)
  .regex(MANAGER)
  .describe("Manager: `<cluster>/<kind>/<namespace>/<name>` of a manifest.")
  .meta({ examples: ["main/Role/shop/editor"] });

export const Digest = z
  .string()
  .describe(
    "Opaque digest that changes whenever anything changes that a manifest determines of the object. Compare it only with digests from the same api-server.",
  )
  .meta({ examples: ["5d41402abc4b2a76b9719d911017c592ae2b1f9c0d8e7f6a5b4c3d2e1f0a9b8c"] });

export const TO_READ = {
  readApi: onApi("read_api", "for kind `api` or `policy`"),
  readRole: onRbac("read_role", "for kind `role`"),
  readPermission: onRbac("read_permission", "for kind `permission`"),
  readNamespace: onNamespace("read_namespace", "for kind `namespace`"),
  readOverride: onNamespace("read_override", "for kind `override`"),
  readKey: onApi("read_key", "for kind `key`"),
};

/** Permission to read objects of the kind. It is required even to find out whether an object exists. */
export const TO_LEARN_OF = {
  api: TO_READ.readApi,
  role: TO_READ.readRole,
  permission: TO_READ.readPermission,
  namespace: TO_READ.readNamespace,
  override: TO_READ.readOverride,
  key: TO_READ.readKey,
  policy: TO_READ.readApi,
} as const satisfies Record<ManagedKind, unknown>;

/** Returns the error for a missing object; `which` is the id or name in the request. */
export const managedNotFound = (kind: ManagedKind, which: string): PublicError => MANAGED[kind].notFound(which);
