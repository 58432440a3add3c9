import { isDeepStrictEqual } from "node:util";
import type { RoleSpec } from "../../../core/manifests/role.ts";
import { labelOf, olderRival } from "../claims.ts";
import {
  CONFLICT_REQUEUE_MS,
  firstOf,
  type Plan,
  progressing,
  ready,
  released,
  stalled,
  type Verdict,
} from "../plan.ts";
import { deletionPolicyOf, invalid } from "../spec.ts";
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
  | { readonly type: "delete" | "release"; readonly roleId: string };

/** What is to be done so that the store holds the role as the manifest says. */
export function planRole(observed: ObservedRole): Plan<RoleAction> {
  const { object, parsed, stored } = observed;
  if (object.metadata.deletionTimestamp !== undefined) return planDeletion(observed);
  const own = isOwn(observed) ? stored : undefined;
  const status = { roleId: own?.roleId };
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) {
    return {
      actions: [],
      verdict,
      status,
      ...(verdict.reason === "Conflict" ? { requeueAfterMs: CONFLICT_REQUEUE_MS } : {}),
    };
  }
  const { spec } = parsed;
  if (spec === undefined) throw new Error("a spec that does not parse passed the checks");
  const actions = stored === undefined ? [creation(spec)] : changes(spec, stored, own === undefined);
  if (actions.length > 0) return { actions, verdict: progressing("Progressing", "The role is being set."), status };
  return { actions, verdict: ready(`The role is in the store as ${stored?.roleId ?? ""}.`), status };
}

/** What keeps a role from being set, the first that holds. */
const CHECKS = [
  ({ parsed }: ObservedRole): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  // Whoever has the role in the store keeps it: a newcomer must not take away what is in force.
  (observed: ObservedRole): Verdict | undefined => {
    if (isOwn(observed)) return undefined;
    const rival = olderRival(observed.object, observed.claimants);
    if (rival === undefined) return undefined;
    return stalled(
      "Conflict",
      `${labelOf(rival)} is older and has the same spec.name. Remove one of the two, or rename this one's role.`,
    );
  },

  ({ stored, manager }: ObservedRole): Verdict | undefined =>
    stored?.manager === undefined || stored.manager === manager
      ? undefined
      : stalled(
          "Conflict",
          `The role ${stored.name} is managed by ${stored.manager}. Edit that manifest, or choose another spec.name.`,
        ),

  ({ parsed: { spec }, stored }: ObservedRole): Verdict | undefined => {
    if (spec === undefined || stored === undefined || stored.manager !== undefined) return undefined;
    if (spec.adopt === "override") return undefined;
    const isEqual = changes(spec, stored, false).length === 0;
    if (spec.adopt === "match" && isEqual) return undefined;
    return stalled(
      "Conflict",
      spec.adopt === "match"
        ? `The role ${stored.name} was made elsewhere and differs from this spec. Make them equal, or set spec.adopt to override.`
        : `The role ${stored.name} was made elsewhere. Set spec.adopt to match or override to take it over, or choose another spec.name.`,
    );
  },
];

const isOwn = ({ stored, manager }: ObservedRole): boolean => stored?.manager === manager;

function creation({ name, description, permissions }: RoleSpec): RoleAction {
  return { type: "create", name, permissions, ...(description ? { description } : {}) };
}

function changes(spec: RoleSpec, stored: StoredRole, adopt: boolean): RoleAction[] {
  const { roleId } = stored;
  // An empty description is stored as none.
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

/** Slugs are unique in the store without regard to case, so another spelling is no difference. */
function areSameSlugs(a: readonly string[], b: readonly string[]): boolean {
  const fold = (slugs: readonly string[]) => new Set(slugs.map((slug) => slug.toLowerCase()));
  return isDeepStrictEqual(fold(a), fold(b));
}

function planDeletion({ object, stored, manager }: ObservedRole): Plan<RoleAction> {
  if (stored === undefined || stored.manager !== manager) return released;
  const type = deletionPolicyOf(object, "Delete") === "Delete" ? "delete" : "release";
  const verdict = progressing("Progressing", "The role is being cleaned up.");
  return { actions: [{ type, roleId: stored.roleId }], verdict, status: { roleId: stored.roleId } };
}
