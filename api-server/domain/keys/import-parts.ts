import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import type { AuditEvent } from "../../db/audit.ts";
import { insertIdentities, listIdentityIdsByExternalId } from "../../db/key-imports.ts";
import type { Actor } from "../actor.ts";
import { identityCreated } from "../identities/identities.ts";
import { ensurePermissions, ensureRoles, type NamedPart } from "../permissions/permission-links.ts";

/*
 * Looks up the permissions, roles and identities to which imported keys refer, for all keys together. Creates missing ones. Concurrent
 * callers with the same names get the same rows.
 */

/** Maximum number of attempts. An attempt fails if a row that another transaction has created is deleted before this one can read it. */
const ATTEMPTS_MAX = 5;

type Acting = Pick<Actor, "caller" | "deps" | "require">;

interface Naming {
  readonly externalId?: string | undefined;
  readonly roles?: readonly string[] | undefined;
  readonly permissions?: readonly string[] | undefined;
}

export interface ImportDeps {
  /** Ids of identities by external id. */
  readonly identityIds: ReadonlyMap<string, string>;
  /** Permissions by lower-case slug. A permission is named after its slug, in the stored spelling. */
  readonly permissions: ReadonlyMap<string, NamedPart>;
  /** Roles by the name in the request. */
  readonly roles: ReadonlyMap<string, NamedPart>;
  /** Audit events of created rows. They are generated lazily, so they can be iterated only once. */
  readonly events: Iterable<AuditEvent>;
}

export async function ensureImportParts(tx: PoolClient, actor: Acting, keys: readonly Naming[]): Promise<ImportDeps> {
  const roleNames = new Set(keys.flatMap((key) => key.roles ?? []));
  const slugs = keys.flatMap((key) => key.permissions ?? []);
  const externalIds = new Set(keys.flatMap(({ externalId }) => (externalId === undefined ? [] : [externalId])));
  // Creates roles, permissions and identities always in this order, to avoid deadlock.
  const { roles, events: madeRoles } = await ensureRoles(tx, actor, [...roleNames]);
  const { permissions, events: madePermissions } = await ensurePermissions(tx, actor, slugs);
  const { identityIds, made } = await ensureIdentities(tx, actor, [...externalIds]);
  function* events(): Iterable<AuditEvent> {
    yield* madeRoles;
    yield* madePermissions;
    for (const identity of made) yield identityCreated(identity);
  }
  return {
    identityIds,
    permissions: new Map(permissions.map(({ id, slug }) => [slug.toLowerCase(), { id, name: slug }])),
    roles,
    events: events(),
  };
}

interface EnsuredIdentities {
  /** Ids of identities by external id. */
  readonly identityIds: Map<string, string>;
  /** Identities that this call created. */
  readonly made: readonly { readonly id: string; readonly externalId: string }[];
}

async function ensureIdentities(
  tx: PoolClient,
  { caller: { workspaceId }, deps }: Acting,
  externalIds: readonly string[],
): Promise<EnsuredIdentities> {
  const identityIds = new Map<string, string>();
  const made: { id: string; externalId: string }[] = [];
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const missing = externalIds.filter((externalId) => !identityIds.has(externalId));
    if (missing.length === 0) return { identityIds, made };
    const found = await listIdentityIdsByExternalId(tx, { workspaceId, externalIds: missing });
    for (const { id, external_id } of found) identityIds.set(external_id, id);
    const unknown = missing.filter((externalId) => !identityIds.has(externalId));
    if (unknown.length === 0) return { identityIds, made };
    const inserted = await insertIdentities(tx, {
      workspaceId,
      createdAt: deps.nowMs(),
      identities: unknown.map((externalId) => ({ id: makeId("identity", deps.randomBytes(16)), externalId })),
    });
    for (const { id, external_id: externalId } of inserted) {
      identityIds.set(externalId, id);
      made.push({ id, externalId });
    }
  }
  throw new Error(`identities could not be made in ${ATTEMPTS_MAX} attempts`);
}
