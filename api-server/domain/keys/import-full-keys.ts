import type { PoolClient } from "pg";
import type { CreditsState } from "../../../core/credits/credits.ts";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { utcDate } from "../../../core/utc-date.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import type { ApiRow } from "../../db/apis.ts";
import { type AuditEvent, type AuditedCall, insertAudit } from "../../db/audit.ts";
import { insertKey } from "../../db/key-changes.ts";
import { listHashes } from "../../db/key-imports.ts";
import { insertKeySecret } from "../../db/key-secrets.ts";
import { listPermissionsBySlug } from "../../db/permissions.ts";
import { listRolesByName } from "../../db/roles.ts";
import type { SealedString } from "../../keys/key-vault.ts";
import type { ChangeDeps, VaultDeps } from "../deps.ts";
import { ensureIdentity } from "../identities/identities.ts";
import type { NamedPart } from "../permissions/permission-links.ts";
import { newRatelimits, type RequestedRatelimit } from "../ratelimits/new-ratelimits.ts";
import { toCreditRow } from "./credits.ts";
import { connectedToKey, keyCreated } from "./key-events.ts";

/*
 * Imports up to a few hundred keys atomically, with one statement per kind of row: either all keys are stored, or the call fails. In
 * contrast, import-keys.ts imports thousands of keys and skips existing hashes.
 */

/** Settings of a key, without its secret and its API. */
export interface KeyDefinition {
  readonly start: string;
  readonly name: string | undefined;
  readonly externalId: string | undefined;
  readonly environment: string | undefined;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  readonly expires: number | undefined;
  readonly enabled: boolean;
  readonly credits: CreditsState | undefined;
  readonly ratelimits: readonly RequestedRatelimit[];
}

/** A key that another system issued, as its importer describes it. */
export interface ForeignKey extends KeyDefinition {
  readonly hash: string;
  /** Key string, which is stored in encrypted form if the API stores recoverable keys; `undefined` if the importer does not know it. */
  readonly plaintext: string | undefined;
}

/** An imported key that is ready to be stored. It has an id, and its plaintext is removed. */
export interface FullKeyToImport extends KeyDefinition {
  readonly id: string;
  readonly api: ApiRow;
  readonly hash: string;
  /** Encrypted string; `undefined` if the key is not recoverable. */
  readonly sealed: SealedString | undefined;
}

/** The caller and the dependencies for preparing a key. */
interface Preparing {
  readonly caller: { readonly workspaceId: string };
  readonly deps: Pick<ChangeDeps, "randomBytes"> & VaultDeps;
}

/** Generates an id for the key, and encrypts its plaintext if the API stores recoverable keys. */
export function prepareImport(
  { caller: { workspaceId }, deps: { randomBytes, keyVault } }: Preparing,
  api: ApiRow,
  { plaintext, ...key }: ForeignKey,
): FullKeyToImport {
  const id = makeId("key", randomBytes(16));
  const isRecoverable = plaintext !== undefined && api.key_encryption;
  return { ...key, id, api, sealed: isRecoverable ? keyVault?.seal({ workspaceId, keyId: id }, plaintext) : undefined };
}

/**
 * Stores the keys, with the identities of their owners.
 * @throws PublicError 412 if a role or permission does not exist; otherwise 409 if another key has the same hash: an existing key, a deleted
 * key, or another key of the request.
 */
export async function importFullKeys(
  tx: PoolClient,
  call: AuditedCall,
  keys: readonly FullKeyToImport[],
): Promise<void> {
  const deps = await findParts(tx, call, keys);
  await refuseExistingHashes(tx, keys);
  const identityIds = new Map<string, string>();
  const events: AuditEvent[] = [];
  // Creates owners in sorted order, so that two imports of the same owners do not deadlock.
  const owners = new Set(keys.flatMap(({ externalId }) => (externalId === undefined ? [] : [externalId])));
  for (const externalId of [...owners].sort()) {
    const ensured = await ensureIdentity(tx, call, externalId);
    identityIds.set(externalId, ensured.identityId);
    events.push(...ensured.events);
  }
  try {
    for (const key of keys) await importOne(tx, call, key, { ...deps, identityIds, events });
  } catch (error) {
    if (isUniqueViolation(error, "keys_hash_key")) throw hashTaken();
    throw error;
  }
  await insertAudit(tx, call, events);
}

/**
 * Maximum number of names that an error lists, so that it fits into a response and a log line. A hundred keys can refer to 100,000 missing
 * roles.
 */
const NAMED = 20;

interface FoundParts {
  /** Roles by their lower-case name. */
  readonly roles: ReadonlyMap<string, NamedPart>;
  readonly permissions: ReadonlyMap<string, NamedPart>;
}

async function findParts(
  tx: PoolClient,
  { caller: { workspaceId } }: AuditedCall,
  keys: readonly FullKeyToImport[],
): Promise<FoundParts> {
  const names = [...new Set(keys.flatMap(({ roles }) => roles))];
  const slugs = [...new Set(keys.flatMap(({ permissions }) => permissions))];
  const roles = new Map<string, NamedPart>();
  for (const row of await listRolesByName(tx, { workspaceId, names })) {
    if (row.id !== null) roles.set(row.asked.toLowerCase(), { id: row.id, name: row.name });
  }
  const permissions = new Map<string, NamedPart>();
  for (const { id, slug } of await listPermissionsBySlug(tx, { workspaceId, slugs })) {
    permissions.set(slug.toLowerCase(), { id, name: slug });
  }
  const missing = [
    ...names.filter((name) => !roles.has(name.toLowerCase())).map((name) => `role ${name}`),
    ...slugs.filter((slug) => !permissions.has(slug.toLowerCase())).map((slug) => `permission ${slug}`),
  ];
  if (missing.length === 0) return { roles, permissions };
  const named = missing.slice(0, NAMED).join(", ");
  const others = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : "";
  throw new PublicError(
    "precondition_failed",
    `These roles and permissions do not exist in the workspace: ${named}${others}.`,
  );
}

async function refuseExistingHashes(tx: PoolClient, keys: readonly FullKeyToImport[]): Promise<void> {
  const hashes = [...new Set(keys.map(({ hash }) => hash))];
  if (hashes.length < keys.length || (await listHashes(tx, { hashes })).length > 0) throw hashTaken();
}

/** Error for a hash that belongs to an existing key. It does not identify that key, because another workspace may own it. */
const hashTaken = (): PublicError =>
  new PublicError("key_already_exists", "A key in the request already exists, or occurs in it twice.");

async function importOne(
  tx: PoolClient,
  { caller: { workspaceId }, deps }: AuditedCall,
  key: FullKeyToImport,
  found: FoundParts & { readonly identityIds: ReadonlyMap<string, string>; readonly events: AuditEvent[] },
): Promise<void> {
  const { id, api, externalId, sealed, meta } = key;
  const createdAt = deps.nowMs();
  const credits = key.credits && toCreditRow(key.credits);
  const roles = pick(found.roles, key.roles);
  const permissions = pick(found.permissions, key.permissions);
  await insertKey(tx, {
    id,
    workspaceId,
    apiId: api.id,
    hash: key.hash,
    start: key.start,
    name: key.name ?? null,
    identityId: (externalId !== undefined && found.identityIds.get(externalId)) || null,
    ownerId: externalId ?? null,
    environment: key.environment ?? null,
    meta: meta === undefined || Object.keys(meta).length === 0 ? null : meta,
    enabled: key.enabled,
    expiresAt: key.expires ?? null,
    manager: null,
    createdAt,
    credits: credits && {
      granted: credits.remaining,
      refillAmount: credits.refillAmount,
      refillDay: credits.refillDay,
      lastRefillOn: utcDate(createdAt),
      lastRefillAt: credits.refillAmount === null ? null : createdAt,
    },
    permissionIds: permissions.map((one) => one.id),
    roleIds: roles.map((one) => one.id),
    ratelimits: newRatelimits(deps, key.ratelimits),
  });
  if (sealed !== undefined) await insertKeySecret(tx, { workspaceId, keyId: id, sealed, createdAt });
  found.events.push(
    ...permissions.map((part) => connectedToKey(id, { type: "permission", ...part })),
    ...roles.map((part) => connectedToKey(id, { type: "role", ...part })),
    keyCreated({ id, name: key.name }, { id: api.id, name: api.name }),
  );
}

/** Returns each permission or role in the list once, even if it occurs several times. */
function pick(known: ReadonlyMap<string, NamedPart>, names: readonly string[]): NamedPart[] {
  const picked = names.flatMap((name) => known.get(name.toLowerCase()) ?? []);
  return [...new Map(picked.map((part) => [part.id, part])).values()];
}
