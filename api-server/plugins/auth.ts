import { PublicError } from "../../core/errors.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { findRootKey, type RootKeyRow } from "../db/root-keys.ts";
import type { Deps } from "../deps.ts";
import type { Caller } from "../domain/actor.ts";
import type { Grants, RequiredPermission } from "../domain/permissions/required-permissions.ts";
import { type CachedValue, createHashCache, type HashCache } from "../keys/hash-cache.ts";
import type { RecordsUsage } from "../keys/root-key-usage.ts";
import { createGrants } from "./grants.ts";

/* Authenticates root keys (api-v2.md section 3). For the lifetime of cached root keys, see keys/hash-cache.ts. */

const ENTRIES_MAX = 10_000;

/** Cached data of a root key. Whether it has expired is checked on each request, so an expiry takes effect without clearing the cache. */
export interface RootKey {
  readonly caller: Caller;
  readonly grants: Grants<RequiredPermission>;
  readonly uses: RecordsUsage;
  readonly enabled: boolean;
  readonly expiresMs: number | undefined;
  readonly workspaceEnabled: boolean;
  /** Maximum requests per minute of the workspace; `undefined` if unlimited. */
  readonly quotaPerMinute: number | undefined;
}

/** Cache entry. `absent`: no root key has this hash, or it was revoked, or its workspace is deleted. */
export type CachedRootKey = CachedValue<RootKey>;

export type RootKeys = HashCache<RootKey>;

const SCHEME = /^Bearer /;

/** Returns the hash of the token in the `Authorization` header. Throws PublicError 401 if the header is malformed. */
export function readRootKeyHash(header: string | undefined): string {
  if (header === undefined) throw unauthorized("The Authorization header is missing.");
  const trimmed = header.trim();
  const token = SCHEME.test(trimmed) ? trimmed.slice("Bearer".length).trim() : "";
  if (token === "") throw unauthorized("The Authorization header is not of the form `Bearer <root key>`.");
  return hashKey(token);
}

/**
 * Returns the root key if it is valid now. All 401 errors have the same text, so that a caller cannot distinguish a revoked root key or an
 * ordinary API key from a key that never existed.
 * @throws PublicError 401, or 403 if the workspace is disabled.
 */
export function admit(known: CachedRootKey, nowMs: number): RootKey {
  if (known === "absent" || !known.enabled || (known.expiresMs !== undefined && nowMs > known.expiresMs)) {
    throw unauthorized("The root key is not valid.");
  }
  if (!known.workspaceEnabled) throw new PublicError("forbidden", "The workspace is disabled.");
  return known;
}

/** Returns the error 401, which names the supported scheme (RFC 9110, section 11.6.1). */
const unauthorized = (detail: string): PublicError =>
  new PublicError("unauthorized", detail, { headers: { "WWW-Authenticate": "Bearer" } });

export const createRootKeys = ({
  db,
  projection,
  rootKeyUsage,
}: Pick<Deps, "db" | "projection" | "rootKeyUsage">): RootKeys =>
  createHashCache({
    projection,
    kind: "rootKey",
    entriesMax: ENTRIES_MAX,
    workspaceOf: ({ caller }: RootKey) => caller.workspaceId,
    read: async (hash) => {
      const row = await findRootKey(db, { hash });
      return row && toRootKey(row, rootKeyUsage.of(row.id));
    },
  });

const toRootKey = (row: RootKeyRow, uses: RecordsUsage): RootKey => ({
  caller: {
    workspaceId: row.workspace_id,
    actor: { type: "rootkey", id: row.id, name: row.name ?? "root key" },
  },
  grants: createGrants(new Set(row.permissions), "The root key", uses.note),
  uses,
  enabled: row.enabled,
  expiresMs: row.expires_at ?? undefined,
  workspaceEnabled: row.workspace_enabled,
  quotaPerMinute: row.quota_per_minute ?? undefined,
});
