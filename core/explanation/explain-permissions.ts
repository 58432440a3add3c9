import { compileGrants } from "../permissions/grants.ts";
import type { Query } from "../permissions/query.ts";
import type { KeyCheck } from "../verification/check-key.ts";
import type { KeyView } from "../verification/key-view.ts";
import { BY_MAX, type ExplainedPermissions, HELD_MAX, type Source } from "./shapes.ts";
import { keySource, said, type Undecided } from "./step.ts";

/** Explains which permissions a query requires, which of them the key holds, and through which roles. */
export function explainPermissions(view: KeyView, query: Query | undefined): ExplainedPermissions {
  const held = new Map<string, { slug: string; isDirect: boolean; roles: string[] }>();
  for (const slug of view.key.permissions) held.set(slug, { slug, isDirect: true, roles: [] });
  for (const { name, permissions } of view.roleRecords) {
    for (const slug of permissions) {
      const one = held.get(slug) ?? { slug, isDirect: false, roles: [] };
      one.roles.push(name);
      held.set(slug, one);
    }
  }
  const all = [...held.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1));
  const grants = query === undefined ? [] : all.map((one) => ({ ...one, grants: compileGrants([one.slug]) }));
  const required = slugsIn(query).map((slug) => ({
    slug,
    isHeld: view.grants.satisfies(slug),
    by: grants
      .filter((one) => one.grants.satisfies(slug))
      .flatMap((one) => [
        ...(one.isDirect ? [{ slug: one.slug }] : []),
        ...one.roles.map((role) => ({ slug: one.slug, role })),
      ])
      .slice(0, BY_MAX),
  }));
  return { needed: required, held: all.slice(0, HELD_MAX), heldCount: all.length };
}

/** Returns all distinct slugs that a query names, in order. */
function slugsIn(query: Query | undefined): string[] {
  if (query === undefined) return [];
  if (query.op === "permission") return [query.slug];
  return [...new Set(query.operands.flatMap(slugsIn))];
}

export function permissionsStep(
  { needed: required }: ExplainedPermissions,
  passed: boolean,
): Omit<Undecided, "sources"> {
  if (required.length === 0) return said("permissions", passed, "", "No permission is needed.");
  const lacking = required.filter(({ isHeld }) => !isHeld).map(({ slug }) => slug);
  const observed = required.map(({ slug }) => slug).join(", ");
  if (!passed) return said("permissions", false, observed, `The key lacks ${lacking.join(", ")}.`);
  const ways = required.flatMap(({ slug, by: [first] }) => (first === undefined ? [] : [wayOf(slug, first)]));
  return said("permissions", true, observed, `The key holds what is needed: ${ways.join(", ")}.`);
}

const wayOf = (slug: string, { slug: held, role }: { readonly slug: string; readonly role?: string }): string => {
  const as = held === slug ? slug : `${slug} as ${held}`;
  return role === undefined ? `${as} itself` : `${as} by the role ${role}`;
};

/** Returns the roles that grant the required slugs. Includes the key itself if it holds a slug directly, or if no role grants any slug. */
export function permissionSources(
  { view }: Pick<KeyCheck, "view">,
  { needed: required }: ExplainedPermissions,
  ageMs: number,
): Source[] {
  const givers = required.flatMap(({ by: [first] }) => (first === undefined ? [] : [first.role]));
  const roles = view.roleRecords.filter(({ name }) => givers.includes(name));
  const sources: Source[] = roles.map(({ id, name }) => ({ kind: "role", id, name, ageMs }));
  const own = givers.includes(undefined) || sources.length === 0;
  return own ? [keySource({ view }, ageMs), ...sources] : sources;
}
