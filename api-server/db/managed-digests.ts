import type { Queryable } from "../../postgres/queryable.ts";
import type { ManagerRef } from "./managed-objects.ts";

/*
 * Digests of managed objects. A digest covers exactly the fields that a manifest controls, and stays the same while the object matches the
 * manifest. This lets a client detect changes to thousands of objects with a single list call.
 */

export const DIGESTED_KINDS = ["role", "namespace", "override"] as const;
export type DigestedKind = (typeof DIGESTED_KINDS)[number];

export interface DigestRow {
  readonly id: string;
  readonly manager: string;
  /** Namespace of an override; `null` for other kinds. */
  readonly namespace_id: string | null;
  readonly digest: string;
}

/**
 * Selects the live rows of `roles`, `ratelimit_namespaces` and `ratelimit_overrides` that have a manager. The digest is computed from the
 * column `content`.
 */
const CONTENT: Readonly<Record<DigestedKind, string>> = {
  role: `select roles.id, roles.workspace_id, roles.manager, null as namespace_id,
                jsonb_build_array(roles.name, roles.description,
                  (select jsonb_agg(permissions.slug order by permissions.slug collate "C")
                     from role_permissions
                     join permissions on permissions.id = role_permissions.permission_id
                    where role_permissions.role_id = roles.id)) as content
           from roles
          where roles.manager is not null`,
  namespace: `select namespaces.id, namespaces.workspace_id, namespaces.manager, null as namespace_id,
                     jsonb_build_array(namespaces.name) as content
                from ratelimit_namespaces namespaces
               where namespaces.manager is not null and namespaces.deleted_at is null`,
  // The digest includes the namespace's manager, because the manager determines whether the override is allowed in the namespace.
  override: `select overrides.id, overrides.workspace_id, overrides.manager, overrides.namespace_id,
                    jsonb_build_array(overrides.namespace_id, namespaces.manager, overrides.identifier, overrides.max_count,
                      overrides.duration_ms, overrides.async) as content
               from ratelimit_overrides overrides
               join ratelimit_namespaces namespaces on namespaces.id = overrides.namespace_id
              where overrides.manager is not null and overrides.deleted_at is null`,
};

const columns = (kind: DigestedKind): string =>
  `select found.id, found.manager, found.namespace_id,
          encode(sha256(convert_to(found.content::text, 'UTF8')), 'hex') as digest
     from (${CONTENT[kind]}) found
    where found.workspace_id = $1`;

/** Returns the digest of the live object of the kind with this manager; `undefined` if there is none. */
export async function findDigest(
  db: Queryable,
  kind: DigestedKind,
  { workspaceId, manager }: ManagerRef,
): Promise<string | undefined> {
  const { rows } = await db.query<DigestRow>({
    name: `find-digest-of-${kind}`,
    text: `${columns(kind)} and found.manager = $2`,
    values: [workspaceId, manager],
  });
  return rows[0]?.digest;
}

/** Returns digests in id order, starting at the cursor. */
export async function listDigestsOf(
  db: Queryable,
  kind: DigestedKind,
  page: { readonly workspaceId: string; readonly cluster: string; readonly cursor: string; readonly rowsMax: number },
): Promise<DigestRow[]> {
  const { workspaceId, cluster, cursor, rowsMax } = page;
  const text = `${columns(kind)}
      and split_part(found.manager, '/', 1) = $2 and found.id >= $3
    order by found.id
    limit $4`;
  const values = [workspaceId, cluster, cursor, rowsMax];
  const { rows } = await db.query<DigestRow>({ name: `list-digests-of-${kind}`, text, values });
  return rows;
}
