import { isDeepStrictEqual } from "node:util";
import type { RoleSpec } from "../../../core/manifests/role.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { conflictOf, ownOf } from "../claims.ts";
import { planCleanUp } from "../clean-up.ts";
import { blocked, firstOf, type Plan, progressing, ready, type Verdict } from "../plan.ts";
import { invalid } from "../spec.ts";
import type { ObservedRole, StoredRole } from "./gather.ts";

export type RoleAction =
  | {
      readonly type: "create";
      readonly name: string;
      readonly description?: string;
      readonly permissions: readonly string[];
    }
  | {
      readonly type: "update";
      readonly roleId: string;
      readonly name: string;
      readonly description: string | null;
      readonly adopt: boolean;
    }
  | { readonly type: "setPermissions"; readonly roleId: string; readonly permissions: readonly string[] }
  | { readonly type: "delete"; readonly roleId: string; readonly onlyIfUnused: boolean }
  | { readonly type: "release"; readonly roleId: string };

/** Plans the actions that store the role of the manifest. */
export function planRole(observed: ObservedRole): Plan<RoleAction> {
  const { object, parsed, stored } = observed;
  const own = ownOf(observed);
  const status = { roleId: own?.roleId };
  if (object.metadata.deletionTimestamp !== undefined) {
    return planCleanUp(object, {
      own: [own],
      noun: "role",
      status,
      removal: (type, { roleId }): RoleAction =>
        type === "release" ? { type, roleId } : { type, roleId, onlyIfUnused: !saysDelete(object) },
    });
  }
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) return blocked(verdict, status);
  const { spec } = parsed;
  if (spec === undefined) throw new Error("an invalid spec passed the checks");
  const actions = stored === undefined ? [creation(spec)] : changes(spec, stored, own === undefined);
  if (actions.length > 0) return { actions, verdict: progressing("Progressing", "The role is being written."), status };
  return { actions, verdict: ready(`The role is stored as ${stored?.roleId ?? ""}.`), status };
}

/** Returns whether the manifest explicitly allows deleting the role, from which customers' keys would lose their permissions. */
const saysDelete = ({ spec }: ManifestObject): boolean =>
  (spec as { deletionPolicy?: unknown } | undefined)?.deletionPolicy === "Delete";

/** Checks that prevent a role from being stored. The first failing check is reported. */
const CHECKS = [
  ({ parsed }: ObservedRole): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  ({ parsed: { spec }, ...claimed }: ObservedRole): Verdict | undefined =>
    conflictOf(claimed, {
      competitor: (competitor) =>
        `${competitor} is older and has the same spec.name. Remove one of the two objects, or change spec.name of this one.`,
      managed: ({ name }, manager) =>
        `The role ${name} is managed by ${manager}. Edit that manifest, or choose another spec.name.`,
      unmanaged: (stored) => ({
        adopt: spec?.adopt,
        unasked: `The role ${stored.name} already exists and is unmanaged. Set spec.adopt to Match or Override to adopt it, or choose another spec.name.`,
        differs:
          spec === undefined || changes(spec, stored, false).length === 0
            ? undefined
            : `The role ${stored.name} already exists, is unmanaged, and differs from this spec. Make the spec equal, or set spec.adopt to Override.`,
      }),
    }),
];

function creation({ name, description, permissions }: RoleSpec): RoleAction {
  return { type: "create", name, permissions, ...(description ? { description } : {}) };
}

function changes(spec: RoleSpec, stored: StoredRole, adopt: boolean): RoleAction[] {
  const { roleId } = stored;
  // The database stores an empty description as null.
  const description = spec.description || null;
  const isSame = spec.name === stored.name && description === (stored.description ?? null);
  const { permissions } = spec;
  return [
    ...(isSame && !adopt ? [] : [{ type: "update", roleId, name: spec.name, description, adopt } as const]),
    ...(areSameSlugs(permissions, stored.permissions)
      ? []
      : [{ type: "setPermissions", roleId, permissions } as const]),
  ];
}

/** Returns whether both lists are equal apart from case, because slugs are unique in the database apart from case. */
function areSameSlugs(a: readonly string[], b: readonly string[]): boolean {
  const fold = (slugs: readonly string[]) => new Set(slugs.map((slug) => slug.toLowerCase()));
  return isDeepStrictEqual(fold(a), fold(b));
}
