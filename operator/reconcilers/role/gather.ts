import { RoleSpec } from "../../../core/manifests/role.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { competitorsOf } from "../claims.ts";
import { type Context, managerOf } from "../context.ts";
import { roleNameIn } from "../raw-spec.ts";
import { type ParsedSpec, parseSpec } from "../spec.ts";
import { findManaged, findOwnOrNamed, foundOr404 } from "../stored.ts";

export interface StoredRole {
  readonly roleId: string;
  readonly name: string;
  readonly description: string | undefined;
  /** Slugs of the role's permissions. */
  readonly permissions: readonly string[];
  readonly manager: string | undefined;
  readonly lastManager?: string | undefined;
}

export interface ObservedRole {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<RoleSpec>;
  readonly manager: string;
  /** Role that this object manages; otherwise the one with the desired name, if any. */
  readonly stored: StoredRole | undefined;
  /** All Role objects that claim the same name, including this one. */
  readonly claimants: readonly ManifestObject[];
  readonly digest?: string | undefined;
}

export async function gatherRole(object: ManifestObject, ctx: Context): Promise<ObservedRole> {
  const parsed = parseSpec(RoleSpec, object);
  const manager = managerOf(ctx, object);
  const { stored, digest } = await findOwnOrNamed(ctx.api, {
    kind: "role",
    manager,
    name: roleNameIn(object),
    find: (role) => findRole(role, ctx),
    isNamed: (role, name) => role.name.toLowerCase() === name.toLowerCase(),
  });
  return { object, parsed, manager, stored, digest, claimants: competitorsOf(object, ctx.source) };
}

async function findRole(role: string, { api }: Context): Promise<StoredRole | undefined> {
  const found = foundOr404(await api.call("permissions.getRole", { role }));
  if (found === undefined) return undefined;
  const managed = await findManaged(api, "role", found.id);
  if (managed === undefined) return undefined;
  return {
    roleId: found.id,
    name: found.name,
    description: found.description,
    permissions: (found.permissions ?? []).map(({ slug }) => slug),
    manager: managed.manager,
    lastManager: managed.lastManager,
  };
}
