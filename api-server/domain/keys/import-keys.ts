import type { PoolClient } from "pg";
import type { CreditsState } from "../../../core/credits/credits.ts";
import { makeId } from "../../../core/ids.ts";
import { utcDate } from "../../../core/utc-date.ts";
import type { ApiRow } from "../../db/apis.ts";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { type ImportedKey, insertImportedKeys, listHashes } from "../../db/key-imports.ts";
import type { MigrationRow } from "../../db/migrations-of-keys.ts";
import type { Actor } from "../actor.ts";
import type { NamedPart } from "../permissions/permission-links.ts";
import { newRatelimits, type RequestedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { toCreditRow } from "./credits.ts";
import { ensureImportParts, type ImportDeps } from "./import-parts.ts";
import { connectedToKey, keyCreated } from "./key-events.ts";

/** Number of keys per statement: large enough to make round trips cheap, and small enough to keep each statement short. */
const BATCH = 1000;

/** A key as in the request. */
export interface KeyToImport {
  readonly name?: string | undefined;
  readonly externalId?: string | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly roles?: readonly string[] | undefined;
  readonly permissions?: readonly string[] | undefined;
  readonly expires?: number | undefined;
  readonly enabled: boolean;
  readonly credits?: CreditsState | undefined;
  readonly ratelimits?: readonly RequestedRatelimit[] | undefined;
}

/** A row to be inserted, with the permissions and roles of the key. */
interface Prepared {
  readonly row: ImportedKey;
  readonly permissions: readonly NamedPart[];
  readonly roles: readonly NamedPart[];
}

/**
 * Stores the keys whose hash is new, with the identities, permissions and roles to which they refer.
 * @param options.entries the keys by the stored form of their hash.
 * @returns the ids of the stored keys, by their hash.
 */
export async function importKeys(
  tx: PoolClient,
  actor: Actor,
  { api, migration, entries }: { api: ApiRow; migration: MigrationRow; entries: ReadonlyMap<string, KeyToImport> },
): Promise<ReadonlyMap<string, string>> {
  const { caller, deps } = actor;
  const known = new Set(await listHashes(tx, { hashes: [...entries.keys()] }));
  const requested = [...entries].filter(([hash]) => !known.has(hash)).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = await ensureImportParts(
    tx,
    actor,
    requested.map(([, entry]) => entry),
  );
  const keys = requested.map(([hash, entry]) => prepare(actor, { hash, entry, parts }));

  const createdAt = deps.nowMs();
  const target = { workspaceId: caller.workspaceId, apiId: api.id, migrationId: migration.id, createdAt };
  const inserted = new Set<string>();
  for (let at = 0; at < keys.length; at += BATCH) {
    const rows = keys.slice(at, at + BATCH).map(({ row }) => row);
    const ids = await insertImportedKeys(tx, { ...target, today: utcDate(createdAt), keys: rows });
    for (const id of ids) inserted.add(id);
  }
  // Omits keys if another transaction has inserted their hash in the meantime.
  const ours = keys.filter(({ row }) => inserted.has(row.id));
  function* allEvents(): Iterable<AuditEvent> {
    yield* parts.events;
    for (const key of ours) yield* toEvents(key, api);
  }
  await insertAudit(tx, actor, allEvents());
  return new Map(ours.map(({ row: { hash, id } }) => [hash, id]));
}

function prepare(
  { deps }: Actor,
  { hash, entry, parts }: { hash: string; entry: KeyToImport; parts: ImportDeps },
): Prepared {
  const credits = entry.credits && toCreditRow(entry.credits);
  const permissions = pick(parts.permissions, entry.permissions?.map((slug) => slug.toLowerCase()) ?? []);
  const roles = pick(parts.roles, entry.roles ?? []);
  const row: ImportedKey = {
    id: makeId("key", deps.randomBytes(16)),
    hash,
    name: entry.name ?? null,
    identityId: entry.externalId === undefined ? null : (parts.identityIds.get(entry.externalId) ?? null),
    meta: entry.meta === undefined || Object.keys(entry.meta).length === 0 ? null : entry.meta,
    enabled: entry.enabled,
    expiresAt: entry.expires ?? null,
    credits: credits && {
      granted: credits.remaining,
      refillAmount: credits.refillAmount,
      refillDay: credits.refillDay,
    },
    permissionIds: permissions.map(({ id }) => id),
    roleIds: roles.map(({ id }) => id),
    ratelimits: newRatelimits(deps, entry.ratelimits ?? []),
  };
  return { row, permissions, roles };
}

/** Returns each permission or role in the list once, even if it occurs several times, with the same or different letter case. */
function pick(known: ReadonlyMap<string, NamedPart>, names: readonly string[]): NamedPart[] {
  const picked = new Map<string, NamedPart>();
  for (const name of names) {
    const part = known.get(name);
    if (part !== undefined) picked.set(part.id, part);
  }
  return [...picked.values()];
}

const toEvents = ({ row, permissions, roles }: Prepared, api: ApiRow): AuditEvent[] => [
  ...permissions.map((part) => connectedToKey(row.id, { type: "permission", ...part })),
  ...roles.map((part) => connectedToKey(row.id, { type: "role", ...part })),
  keyCreated({ id: row.id, name: row.name ?? undefined }, { id: api.id, name: api.name }),
];
