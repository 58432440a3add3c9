import { PublicError } from "../../core/errors.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { BoundedCache } from "../../edge/bounded-cache.ts";
import type { Deps } from "../deps.ts";
import { PROPAGATION_BOUND_MS } from "../health.ts";
import type { Grants, NeededPermission } from "../needed-permissions.ts";
import type { Caller } from "../procedure.ts";
import { findRootKey, type RootKeyRow } from "../store/root-keys.ts";
import { createGrants } from "./grants.ts";

/*
 * Root keys (api-v2.md section 3). A cached root key, or its cached absence, is dropped when the change stream reports a change of it
 * or of its workspace, and is not used while that stream is staler than the promised bound for its workspace.
 */

const ENTRIES_MAX = 10_000;
/** Strangers decide how many absences there are, so these have a cache of their own and never evict existing root keys. */
const ABSENCES_MAX = 10_000;

/** The cached data of a root key. Its state is judged on each request: expiry needs no propagation. */
export interface RootKey {
  readonly caller: Caller;
  readonly grants: Grants<NeededPermission>;
  readonly enabled: boolean;
  readonly expiresMs: number | undefined;
  readonly workspaceEnabled: boolean;
  /** Requests per minute of the workspace; undefined means unlimited. */
  readonly quotaPerMinute: number | undefined;
}

/** `absent`: no root key has this hash, or it was revoked, or its workspace is gone. */
export type KnownRootKey = RootKey | "absent";

export interface RootKeys {
  /**
   * Returns what is cached and fresh without a promise or any I/O; otherwise reads the database. Concurrent callers with the same
   * root key share one read.
   */
  find(hash: string): KnownRootKey | Promise<KnownRootKey>;
}

const SCHEME = /^Bearer /;

/** The hash of the token in the `Authorization` header. Throws PublicError 401 when the header is not of its form. */
export function readRootKeyHash(header: string | undefined): string {
  if (header === undefined) throw unauthorized("The Authorization header is missing.");
  const trimmed = header.trim();
  const token = SCHEME.test(trimmed) ? trimmed.slice("Bearer".length).trim() : "";
  if (token === "") throw unauthorized("The Authorization header is not of the form `Bearer <root key>`.");
  return hashKey(token);
}

/**
 * Returns the root key if it may be used now. All problems of a key have the same text, so that a caller cannot distinguish a
 * revoked root key or an ordinary API key from a key that never existed.
 * @throws PublicError 401, or 403 when the workspace is disabled.
 */
export function admit(known: KnownRootKey, nowMs: number): RootKey {
  if (known === "absent" || !known.enabled || (known.expiresMs !== undefined && nowMs > known.expiresMs)) {
    throw unauthorized("The root key is not valid.");
  }
  if (!known.workspaceEnabled) throw new PublicError("forbidden", "The workspace is disabled.");
  return known;
}

/** RFC 9110, section 11.6.1: a 401 names the scheme that would be accepted. */
const unauthorized = (detail: string): PublicError =>
  new PublicError("unauthorized", detail, { headers: { "WWW-Authenticate": "Bearer" } });

export function createRootKeys({ db, projection }: Pick<Deps, "db" | "projection">): RootKeys {
  const found = new BoundedCache<string, RootKey>(ENTRIES_MAX);
  const absent = new BoundedCache<string, "absent">(ABSENCES_MAX);
  const pending = new Map<string, Promise<KnownRootKey>>();

  projection.onDropped((ref) => {
    if (ref?.kind === "rootKey") {
      found.delete(ref.id);
      absent.delete(ref.id);
      // A read in flight may have seen the state before the change: its callers use it, later ones do not.
      pending.delete(ref.id);
    } else if (ref === undefined || ref.kind === "workspace") {
      found.clear();
      absent.clear();
      pending.clear();
    }
  });

  /** Reads it, and caches the result unless the root key was dropped meanwhile. */
  function ask(hash: string): Promise<KnownRootKey> {
    const asked = findRootKey(db, { hash })
      .then((row): KnownRootKey => {
        const known = row === undefined ? "absent" : toRootKey(row);
        if (pending.get(hash) === asked) {
          if (known === "absent") absent.set(hash, known);
          else found.set(hash, known);
        }
        return known;
      })
      .finally(() => {
        if (pending.get(hash) === asked) pending.delete(hash);
      });
    pending.set(hash, asked);
    return asked;
  }

  return {
    find(hash) {
      const known = found.get(hash);
      // The workspace of an absent root key is unknown, so its absence counts as stale as the stalest workspace.
      const isFresh = projection.stalenessMs(known?.caller.workspaceId) <= PROPAGATION_BOUND_MS;
      const cached = isFresh ? (known ?? absent.get(hash)) : undefined;
      return cached ?? pending.get(hash) ?? ask(hash);
    },
  };
}

const toRootKey = (row: RootKeyRow): RootKey => ({
  caller: {
    workspaceId: row.workspace_id,
    rootKeyId: row.id,
    rootKeyName: row.name ?? undefined,
  },
  grants: createGrants(new Set(row.permissions)),
  enabled: row.enabled,
  expiresMs: row.expires_at ?? undefined,
  workspaceEnabled: row.workspace_enabled,
  quotaPerMinute: row.quota_per_minute ?? undefined,
});
